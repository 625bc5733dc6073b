// @ts-check
/** Who has a place in a course and who waits, and what an organizer does for them. */
import { newKey } from "../../../client.js";
import { now } from "../../../clock.js";
import { h, redraw } from "../../../kernel.js";
import { bones, button, icon, section, whose } from "../../../parts.js";
import { readAll } from "../../../store.js";
import { compareNames, t, timeOf } from "../../../text.js";
import { Actions } from "../forms/actions.js";
import { input } from "../forms/form.js";
import { whenOf } from "../forms/localtime.js";
import { toggleButton, withCount } from "../parts.js";
import { userPicker } from "./userpicker.js";

/** @param {string} slotId @param {() => any} reload */
export function roster(slotId, reload) {
  const actions = new Actions();
  /** @type {any[] | null} */
  let bookings = null;
  /** @type {any[]} */
  let waiting = [];
  /** @type {any} */
  let slot = null;
  let isAdding = false;
  /** The booking that is moved, where it may go, and where it goes. */
  let moving = "";
  /** @type {any[] | null} */
  let targets = null;
  let target = "";
  const picker = userPicker(userActions);

  /** @param {any} current the slot */
  async function load(current) {
    slot = current;
    [bookings, waiting] = [await readAll("roster", { slot: slotId }, "slotRoster"), (await readAll("slotWaitlist", { slot: slotId }, "slotWaitlist")) ?? []];
  }

  /** @param {string} key @param {string} name @param {any} variables @param {string} said */
  async function change(key, name, variables, said) {
    if (!(await actions.run(key, name, variables, said))) return;
    await reload();
    // The button that was clicked is gone.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (document.activeElement === document.body) document.getElementById(isAdding ? "user-search" : "main")?.focus({ preventScroll: true });
    }));
  }

  /** @param {any} user */
  function userActions(user) {
    const name = whose(user.name);
    const key = `user ${user.id}`;
    const has = (bookings ?? []).some((booking) => booking.user?.id === user.id);
    if (has) return [h("span", { class: "tag yours" }, icon("tick"), t("roster.has"))];
    if (waiting.some((entry) => entry.user?.id === user.id)) return [h("span", { class: "tag wait" }, t("roster.waits"))];
    if (user.banned) return [h("span", { class: "tag stop" }, t("roster.banned"))];
    const input = { slotId, userId: user.id, idempotencyKey: newKey(), waitMs: 5000 };
    return [
      h("div", { class: "row" }, slot.remaining > 0
        ? [actions.button(key, "second", [t("action.book"), name], () => change(key, "bookSlot", { input }, t("roster.booked", { name: user.name }))),
            actions.button(
              `hold ${user.id}`,
              "plain",
              [t("roster.hold"), name.cloneNode(true)],
              () => change(`hold ${user.id}`, "bookSlot", { input: { ...input, hold: true } }, t("roster.booked", { name: user.name })),
            )]
        : actions.button(key, "second", [t("action.join"), name], () => change(key, "joinWaitlist", { slotId, userId: user.id }, t("roster.waits")))),
      actions.problem(key),
      actions.problem(`hold ${user.id}`),
    ];
  }

  /** @param {any} booking */
  async function startMove(booking) {
    moving = moving === booking.id ? "" : booking.id;
    target = "";
    redraw();
    if (!moving || targets || !slot.campaign) return;
    const found = await readAll("planSlots", { campaign: slot.campaign.id, status: "PUBLISHED" }, "slots");
    targets = (found ?? []).filter((each) => each.id !== slotId && Date.parse(each.endTime) > now()).sort((a, b) => a.startTime.localeCompare(b.startTime));
    redraw();
    requestAnimationFrame(() => document.getElementById("move-to")?.focus());
  }

  /** @param {any} booking */
  function mover(booking) {
    if (!targets) return slot.campaign ? bones(1) : h("p", { class: "soft" }, t("roster.nowhere"));
    const key = `move ${booking.id}`;
    const options = [
      ["", t("roster.choose")],
      ...targets.map((each) => [
        each.id,
        `${each.title} · ${whenOf(each.startTime, each.timeZone)} · ${t("state.free", { free: each.remaining, all: each.capacity, count: each.remaining })}`,
      ]),
    ];
    return h(
      "div",
      { class: "row whole" },
      h("label", { for: "move-to" }, t("roster.moveTo")),
      input(target, { class: "input fit", id: "move-to", options, onchange: (/** @type {any} */ event) => {
        target = event.target.value;
        redraw();
      } }),
      target && actions.button(key, "", [t("roster.move")], async () => {
        const input = { bookingId: booking.id, slotId: target, idempotencyKey: newKey() };
        if (!(await actions.run(key, "moveBooking", { input }, t("roster.moved", { name: booking.user?.name })))) return;
        moving = "";
        targets = null;
        await reload();
      }),
      actions.problem(key),
    );
  }

  /** @param {any} booking */
  function bookingRow(booking) {
    const name = booking.user?.name ?? "";
    const key = `cancel ${booking.id}`;
    const notes = [
      booking.user?.email ?? booking.user?.username,
      ...(booking.user?.groups ?? []),
      booking.madeBy && booking.madeBy.id !== booking.user?.id && t("roster.by", { name: booking.madeBy.name }),
      booking.waitedSince && t("roster.fromList"),
      ...booking.overriddenRefusals.map((/** @type {string} */ each) => t(`passed.${each}`, {}, each)),
    ];
    return h(
      "li",
      { "data-key": booking.id },
      h("p", null, h("strong", null, name), h("br"), h("span", { class: "soft" }, notes.filter(Boolean).join(" · "))),
      slot.status !== "CANCELLED" && status(booking),
      slot.status !== "CANCELLED" && h("div", { class: "row" },
        booking.status === "HELD" && actions.button(
          `confirm ${booking.id}`,
          "second",
          [t("action.confirm"), whose(name)],
          () => change(`confirm ${booking.id}`, "confirmBooking", { id: booking.id, key: newKey() }, t("roster.booked", { name })),
        ),
        toggleButton([t("roster.move"), whose(name)], moving === booking.id, () => startMove(booking)),
        actions.askingButton(
          key,
          [t("roster.cancel"), whose(name)],
          t("roster.cancelQuestion", { name }),
          t("roster.cancelYes"),
          () => change(key, "cancelBooking", { id: booking.id, key: newKey() }, t("roster.cancelled", { name })),
          "plain quiet",
        )),
      actions.problem(`confirm ${booking.id}`),
      moving === booking.id && mover(booking),
    );
  }

  /** @param {any} booking */
  function status(booking) {
    if (booking.status === "HELD") return h("span", { class: "tag wait" }, icon("clock"), t("state.held", { time: timeOf(booking.heldUntil, slot.timeZone) }));
    if (booking.attendance === "CHECKED_IN") return h("span", { class: "tag yours" }, icon("tick"), t("roster.here"));
    if (booking.attendance === "NO_SHOW") return h("span", { class: "tag stop" }, icon("warning"), t("roster.absent"));
    return null; // the normal is quiet
  }

  /** @param {any} entry */
  function waitingRow(entry) {
    const key = `leave ${entry.id}`;
    const name = entry.user?.name ?? "";
    const notes = [t("roster.since", { time: whenOf(entry.since, slot.timeZone) }), entry.waitlistedBy && t("roster.by", { name: entry.waitlistedBy.name })];
    return h(
      "li",
      { "data-key": entry.id },
      h("p", null, h("strong", null, `${entry.position}. ${name}`), h("br"), h("span", { class: "soft" }, notes.filter(Boolean).join(" · "))),
      entry.user && actions.askingButton(
        key,
        [t("roster.takeOff"), whose(name)],
        t("roster.takeOffQuestion", { name }),
        t("roster.takeOff"),
        () => change(key, "leaveWaitlist", { slotId, userId: entry.user.id }, t("roster.takenOff", { name })),
        "plain quiet",
      ),
    );
  }

  function toggleAdding() {
    isAdding = !isAdding;
    picker.clear();
    if (isAdding) requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("user-search")?.focus()));
  }

  /** @param {any} current the slot */
  function render(current) {
    slot = current;
    const order = [...(bookings ?? [])].sort((a, b) => compareNames(a.user?.name ?? "", b.user?.name ?? ""));
    return h(
      "div",
      { class: "stack loose", "data-key": "people" },
      section("roster", withCount(t(slot.status === "CANCELLED" ? "roster.ended" : "roster.title"), bookings && String(order.length)), [
        isAdding && slot.status === "PUBLISHED" && picker.render(),
        !bookings ? bones(4) : order.length ? h("ul", { class: "frame list" }, order.map(bookingRow)) : h("p", { class: "soft" }, t("roster.empty")),
      ], { actions: slot.status === "PUBLISHED" && toggleButton(t("roster.add"), isAdding, toggleAdding) }),
      waiting.length > 0 && section(
        "waiting",
        withCount(t("roster.waiting"), String(waiting.length)),
        [h("ol", { class: "frame list" }, waiting.map(waitingRow))],
      ),
    );
  }

  return { load, render };
}
