// @ts-check
/** What an organizer does with the places of people: gives, moves and takes them away, and takes that back. */
import { say } from "../../../page.js";
import { codeOf, newKey } from "../../../client.js";
import { now } from "../../../clock.js";
import { h, redraw } from "../../../kernel.js";
import { bones, icon, whose } from "../../../parts.js";
import { readAll } from "../../../store.js";
import { t } from "../../../text.js";
import { Actions, focusAfter, focusKey } from "../forms/actions.js";
import { input } from "../forms/form.js";
import { whenOf } from "../forms/localtime.js";
import { toggleButton } from "../parts.js";

/**
 * A booking or a waiting list entry, with its user and its slot; and one that ended here, with what became of it and the way back.
 * @typedef {{id: string, status?: string, user: any, slot: any}} Place
 * @typedef {{place: Place, text: string, label: string, back: () => [string, any]}} Ended
 */

/** Return a text of a person or a course. @param {string} name @param {string} text */
const of = (name, text) => name + t("whose", { name: text });

export class Places {
  actions = new Actions();
  /** What ended stays in its row until the page is left. @type {Map<string, Ended>} */
  ended = new Map();
  /** The booking to move, or the user to give a place; and the course that was chosen. */
  open = "";
  target = "";
  /** The courses of each campaign that are not over. @type {Map<string, any[]>} */
  courses = new Map();

  /** @param {() => any} reload */
  constructor(reload) {
    this.reload = reload;
  }

  /** Return what is there, and what ended here without coming back. @param {Place[]} found @param {boolean} [isWaiting] @returns {Place[]} */
  rows(found, isWaiting = false) {
    const placeOf = (/** @type {Place} */ { slot, user }) => `${slot.id} ${user?.id}`;
    const there = new Set(found.map(placeOf));
    const gone = [...this.ended.values()].map(({ place }) => place);
    return [...found, ...gone.filter((each) => isWaiting === !each.status && !there.has(placeOf(each)))];
  }

  /**
   * Run what ends a place, and keep its row with the way back.
   * @param {string} key @param {Place} place @param {string} name @param {any} variables
   * @param {(result: any) => {text: string, said?: string, label?: string, back: () => [string, any]}} toEnd
   */
  async end(key, place, name, variables, toEnd) {
    const result = await this.actions.run(key, name, variables);
    if (!result) return;
    const { text, said = of(place.user?.name, text), label = t("door.undo"), back } = toEnd(result);
    this.ended.set(place.id, { place, text, label, back });
    this.open = "";
    say(said);
    await this.reload();
    focusKey(`button undo ${place.id}`);
  }

  /** @param {Place} place */
  move(place) {
    const { id, slot } = place;
    const to = this.chosen(slot.campaign.id);
    const variables = { input: { bookingId: id, slotId: to.id, idempotencyKey: newKey() } };
    return this.end(`move ${id}`, place, "moveBooking", variables, ({ booking }) => ({
      text: t("place.movedTo", to),
      back: () => ["moveBooking", { input: { bookingId: booking.id, slotId: slot.id, idempotencyKey: newKey() } }],
    }));
  }

  /** @param {Place} place */
  take(place) {
    const { id, slot, user, status } = place;
    const input = { slotId: slot.id, userId: user?.id, hold: status === "HELD", waitMs: 5000 };
    return this.end(`cancel ${id}`, place, "cancelBooking", { id, key: newKey() }, () => ({
      text: t("place.taken"),
      said: t("roster.cancelled", user ?? {}),
      back: () => ["bookSlot", { input: { ...input, idempotencyKey: newKey() } }],
    }));
  }

  /** @param {Place} entry */
  takeOff(entry) {
    const variables = { slotId: entry.slot.id, userId: entry.user.id };
    return this.end(`leave ${entry.id}`, entry, "leaveWaitlist", variables, () => ({
      text: t("place.takenOff"),
      said: t("roster.takenOff", entry.user),
      label: t("place.toEnd"), // the position is lost
      back: () => ["joinWaitlist", variables],
    }));
  }

  /** @param {string} id */
  async undo(id) {
    const { place, back } = this.ended.get(id) ?? {};
    const [name, variables] = /** @type {any} */ (back)();
    const isDone = await this.actions.run(`undo ${id}`, name, variables, t("place.undone", { name: place?.user?.name, title: place?.slot.title }));
    if (isDone) this.ended.delete(id);
    await this.reload();
    focusAfter();
  }

  /** Return what became of a place that ended here, and the way back; null for one that is there. @param {Place} place */
  note({ id, user }) {
    const { text, label, back } = this.ended.get(id) ?? {};
    if (!back) return null;
    const key = `undo ${id}`;
    return [
      h("span", { class: "tag over" }, icon("tick"), text),
      user && h("div", { class: "row" }, this.actions.button(key, "plain", [label, whose(user.name)], () => this.undo(id))),
      this.actions.problems.has(key) && h("div", { class: "whole" }, h("p", null, t("place.notUndone")), this.actions.problem(key)),
    ];
  }

  /** Return the buttons of a booking. @param {Place} place @param {boolean} [canMove] */
  buttons(place, canMove = true) {
    const { id, slot, user, status } = place;
    const name = user?.name ?? "";
    const confirm = `confirm ${id}`;
    return h(
      "div",
      { class: "row" },
      status === "HELD" && this.actions.button(confirm, "second", [t("action.confirm"), whose(name)], async () => {
        if (await this.actions.run(confirm, "confirmBooking", { id, key: newKey() }, t("roster.booked", { name }))) await this.reload();
      }),
      canMove && slot.campaign && toggleButton([t("roster.move"), whose(name)], this.open === id, () => this.toggle(id, slot.campaign.id)),
      this.actions.askingButton(
        `cancel ${id}`,
        [t("roster.cancel"), whose(name)],
        of(slot.title, t("roster.cancelQuestion", { name })),
        t("roster.cancelYes"),
        () => this.take(place),
        "plain quiet",
      ),
      this.actions.problem(confirm),
    );
  }

  /** Return where a booking may go, once somebody asked. @param {Place} place */
  mover(place) {
    const { id, slot } = place;
    if (this.open !== id) return null;
    const key = `move ${id}`;
    return h(
      "div",
      { class: "row whole" },
      this.choice(slot.campaign.id, t("roster.moveTo"), (each) => each.id !== slot.id),
      this.chosen(slot.campaign.id) && this.actions.button(key, "", [t("roster.move")], () => this.move(place)),
      this.actions.problem(key),
    );
  }

  /** Return the button that takes somebody off a waiting list. @param {Place} entry */
  waitingButton(entry) {
    const name = entry.user?.name ?? "";
    return entry.user && this.actions.askingButton(
      `leave ${entry.id}`,
      [t("roster.takeOff"), whose(name)],
      of(entry.slot.title, t("roster.takeOffQuestion", { name })),
      t("roster.takeOff"),
      () => this.takeOff(entry),
      "plain quiet",
    );
  }

  /** Open the choice of a course, or close it. @param {string} id of a booking or a user @param {string} campaign */
  toggle(id, campaign) {
    this.open = this.open === id ? "" : id;
    this.target = "";
    if (this.open) this.read(campaign).then(() => requestAnimationFrame(() => document.getElementById("move-to")?.focus()));
    redraw();
  }

  /** Read the courses of a campaign that are not over. @param {string} campaign */
  async read(campaign) {
    this.actions.problems.delete(campaign);
    try {
      const found = (await readAll("planSlots", { campaign, status: "PUBLISHED" }, "slots")) ?? [];
      const next = found.filter((each) => Date.parse(each.endTime) > now()).sort((a, b) => a.startTime.localeCompare(b.startTime));
      this.courses.set(campaign, next);
    } catch (caught) {
      this.actions.problems.set(campaign, { code: codeOf(caught) });
    }
    redraw();
  }

  /** Return the course that was chosen. @param {string} campaign */
  chosen(campaign) {
    return this.courses.get(campaign)?.find((each) => each.id === this.target);
  }

  /** Return the choice of a course. @param {string} campaign @param {string} label @param {(course: any) => boolean} [isPossible] */
  choice(campaign, label, isPossible = () => true) {
    const found = this.courses.get(campaign)?.filter(isPossible);
    if (!found) return this.actions.problem(campaign) ?? bones(1);
    const options = /** @type {Array<[string, string]>} */ ([
      ["", t("roster.choose")],
      ...found.map((each) => [
        each.id,
        `${each.title} · ${whenOf(each.startTime, each.timeZone)} · ${t("state.free", { free: each.remaining, all: each.capacity, count: each.remaining })}`,
      ]),
    ]);
    return [
      h("label", { for: "move-to" }, label),
      input(this.target, { class: "input fit", id: "move-to", options, onchange: (/** @type {any} */ event) => {
        this.target = event.target.value;
        redraw();
      } }),
    ];
  }

  /** Return the choice of a course for somebody, with what gives a place in it, or on its waiting list. @param {any} user @param {string} campaign */
  giver(user, campaign) {
    const key = `give ${user.id}`;
    const course = this.chosen(campaign);
    const place = course && { slotId: course.id, userId: user.id };
    const book = { input: { ...place, idempotencyKey: newKey(), waitMs: 5000 } };
    const give = (/** @type {string} */ name, /** @type {any} */ variables, /** @type {string} */ said) => async () => {
      if (!(await this.actions.run(key, name, variables, of(user.name, said)))) return;
      this.open = "";
      await this.reload();
      focusAfter();
    };
    return h(
      "div",
      { class: "row whole" },
      this.choice(campaign, t("plan.course")),
      course && (course.remaining > 0
        ? this.actions.button(key, "", [t("action.book"), whose(user.name)], give("bookSlot", book, t("place.has", course)))
        : this.actions.button(key, "", [t("action.join"), whose(user.name)], give("joinWaitlist", place, t("place.waits", course)))),
      this.actions.problem(key),
    );
  }
}
