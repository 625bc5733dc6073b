// @ts-check
/** The door of a slot: who comes in, by code, hand scanner or name. Without a slot, those of today. */
import { reason } from "../../bookings.js";
import { now } from "../../clock.js";
import { codeOf, me, run } from "../../client.js";
import { h, list, redraw } from "../../kernel.js";
import { STORED_DOORS } from "../../offline.js";
import { askOnce, bones, button, checkbox, failure, field, icon, notice, whose } from "../../parts.js";
import { whereOf } from "../../rows.js";
import { tab } from "../../storage.js";
import { readAll } from "../../store.js";
import { commas, deviceZone, t, timeOf } from "../../text.js";
import { openChoice, today } from "./door/choice.js";
import { openScanner } from "./door/scanner.js";
import { isLoud, setLoud, signal } from "./door/signals.js";
import { failed, verdictOf } from "./door/verdicts.js";
import { whenOf } from "./forms/localtime.js";
import { about, byListName, choice, listName } from "./parts.js";

const READ_DOOR_AGAIN_MS = 10_000;
const SLOW_MS = 300;
/** A check-in code: base32, see `checkInCode`. */
const CODE = /^[a-z2-7]{56}$/i;
/** The icons of the verdicts. @type {Record<string, string>} */
const ICONS = { none: "code", yours: "tick", wait: "warning", stop: "cross" };

/** @param {string} slotId */
export function openDoor(slotId) {
  return slotId ? openDoorOf(slotId) : openChoice();
}

/** @param {string} slotId */
function openDoorOf(slotId) {
  /** The `slot`, the `meeting` of it and its `roster`, and when they were read: `readAt`. @type {any} */
  let known = tab.read(
    STORED_DOORS + slotId,
    (kept) => kept.slot.meetings.length && kept.meeting.startTime && kept.roster.every((/** @type {any} */ each) => each.user.groups) && kept,
  );
  let error = "";
  /** The start of the meeting that somebody chose. */
  let chosen = "";
  let text = "";
  let isMissingOnly = false;
  let isDeciding = false;
  let isLeft = false;
  /** How often something changed here: a list that was read before that is old. */
  let changes = 0;
  /** @type {import("./door/verdicts.js").Verdict | null} */
  let verdict = null;
  /** @type {any} */
  let timer;
  const owner = me?.id;
  const scanner = openScanner((code) => letIn({ code }));

  async function load() {
    clearTimeout(timer);
    const before = changes;
    try {
      const { slot } = await run("doorSlot", { id: slotId });
      const meeting = slot && (slot.meetings.find((/** @type {any} */ each) => each.startTime === chosen) ?? meetingOfToday(slot.meetings));
      const roster = slot && (await readAll("doorRoster", { slot: slotId, from: meeting.startTime, until: meeting.endTime }, "slotRoster"));
      if (isLeft) return;
      error = roster ? "" : "SLOT_NOT_FOUND";
      if (roster && before === changes) keep({
        slot,
        meeting,
        roster: roster.map(flat).sort(byListName),
        readAt: Date.now(),
      });
    } catch (caught) {
      error = codeOf(caught);
    }
    const isTaken = error === "FORBIDDEN";
    if (isTaken) {
      known = null; // names are for those who have the right now
      tab.remove(STORED_DOORS + slotId);
    }
    redraw();
    if (!isLeft && !isTaken) timer = setTimeout(load, READ_DOOR_AGAIN_MS);
  }
  load();

  /** @param {any} next */
  function keep(next) {
    const isFirst = !known;
    known = next;
    tab.set(STORED_DOORS + slotId, JSON.stringify(next));
    if (isFirst) setTimeout(focusField, 100);
  }

  function focusField() {
    if (!scanner.isOn()) document.getElementById("code")?.focus({ preventScroll: true }); // no keyboard over the camera
  }
  setTimeout(focusField, 100);

  /** What a hand scanner types goes into the field, whatever has the focus. @param {KeyboardEvent} event */
  function catchKeys(event) {
    const isTyping = event.target instanceof HTMLInputElement && event.target.type === "search";
    if (!isTyping && event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) document.getElementById("code")?.focus();
  }
  addEventListener("keydown", catchKeys);
  /** @type {any} */
  let awake;
  /** The screen stays on at the door. */
  const stayAwake = () => /** @type {any} */ (navigator).wakeLock?.request("screen").then((/** @type {any} */ lock) => (awake = lock), () => null);
  stayAwake();
  document.addEventListener("visibilitychange", stayAwake);

  /**
   * Run an operation on a booking; returns what the door says then.
   * @param {string} name
   * @param {Record<string, any>} variables
   * @param {any} booking of the list, if it is there
   * @param {(result: any) => import("./door/verdicts.js").Verdict} toVerdict
   */
  async function send(name, variables, booking, toVerdict) {
    const { startTime: from, endTime: until } = known.meeting;
    try {
      const result = (await run(name, { ...variables, from, until }, owner))[name];
      update(result.booking);
      return toVerdict(result);
    } catch (caught) {
      return failed(caught, booking);
    }
  }

  /** Check somebody in by `code` or `bookingId`. @param {{code?: string, bookingId?: string}} who */
  async function letIn(who) {
    // The verdict before must not be taken for that of this one.
    const slow = setTimeout(() => {
      verdict = null;
      isDeciding = true;
      redraw();
    }, SLOW_MS);
    clearField();
    const { slot, meeting, roster } = known;
    const code = who.code?.toUpperCase();
    const booking = roster.find((/** @type {any} */ each) => (code ? [code, swapped(code)].includes(each.checkInCode) : each.id === who.bookingId));
    const input = { ...who, slotId, meetingStartTime: meeting.startTime };
    const next = await send("checkIn", { input }, booking, (result) => verdictOf(result, meeting.startTime, slot.timeZone, count()));
    clearTimeout(slow);
    isDeciding = false;
    show(next);
  }

  /** Do something else with a booking. @param {string} name @param {any} booking */
  function change(name, booking) {
    return send(name, { id: booking.id }, booking, (result) => ({
      kind: "wait",
      title: booking.user.name,
      line: result.code ? reason(result) : t(`door.${name}`),
      undo: !result.code && name === "markNoShow" && { name: "undoNoShow", booking },
    }));
  }

  /** Mark all who are missing, one after the other, until one is not recorded. */
  async function markAll() {
    let last = null;
    for (const booking of missing()) {
      last = await change("markNoShow", booking);
      if (!last.undo) break;
      redraw();
    }
    if (last) show(last);
  }

  function clearField() {
    const input = /** @type {HTMLInputElement | null} */ (document.getElementById("code"));
    if (input) input.value = text = "";
  }

  /** @param {import("./door/verdicts.js").Verdict} next */
  function show(next) {
    verdict = next;
    signal(next.kind);
    redraw();
    focusField();
  }

  /** @param {any} booking with its newest attendance */
  function update(booking) {
    changes += 1;
    if (booking?.attendanceByMeeting)
      keep({
        ...known,
        roster: known.roster.map((/** @type {any} */ each) => (each.id === booking.id ? { ...each, ...flat(booking), user: each.user } : each)),
      });
  }

  const confirmed = () => known.roster.filter((/** @type {any} */ each) => each.status === "CONFIRMED");
  const having = (/** @type {string} */ attendance) => confirmed().filter((/** @type {any} */ each) => each.attendance === attendance);
  const missing = () => having("NOT_RECORDED");
  const count = () => t("door.here", { here: having("CHECKED_IN").length, count: confirmed().length });

  /** @param {any} booking */
  function isShown(booking) {
    const words = text.toLocaleLowerCase().split(/[\s,]+/);
    const searched = [booking.user.name, ...booking.user.groups].join(" ").toLocaleLowerCase();
    return words.every((word) => searched.includes(word)) && (!isMissingOnly || missing().includes(booking));
  }

  /** A scanner has typed a code, or a person a name. @param {any} event */
  function submit(event) {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (document.getElementById("code"));
    const typed = input.value.trim();
    if (!typed) return;
    text = typed;
    const found = confirmed().filter(isShown);
    if (CODE.test(typed) || !found.length) return letIn({ code: typed });
    if (found.length === 1) return letIn({ bookingId: found[0].id });
    show({ kind: "wait", title: t("door.several", { count: found.length }), line: t("door.severalLine") });
  }

  function render() {
    if (!known) return [error ? failure(error, load) : bones(5)];
    const { slot, meeting } = known;
    const where = whereOf(slot);
    return [
      h(
        "div",
        { class: "top" },
        h("h1", null, t("door.of", { title: slot.title })),
        h("p", null, h("strong", null, count())),
        h("p", { class: "soft" }, `${whenOf(meeting.startTime, slot.timeZone)}–${timeOf(meeting.endTime, slot.timeZone)}`, where && ` · ${where}`),
      ),
      slot.meetings.length > 1 && meetingChoice(slot, meeting),
      error && notice("wait", "warning", t(error === "OFFLINE" ? "door.offline" : "door.old", { time: timeOf(new Date(known.readAt), deviceZone) })),
      h("div", { class: "stack door" }, verdictPart(), h("div", { class: "stack" }, scanner.render()), rosterPart(Date.parse(meeting.startTime) <= now())),
    ];
  }

  /** A list on paper may be entered days later: any meeting has a door. @param {any} slot @param {any} meeting */
  function meetingChoice(slot, meeting) {
    return choice(
      "meeting",
      t("door.meeting"),
      slot.meetings.map((/** @type {any} */ { startTime }) => [startTime, whenOf(startTime, slot.timeZone)]),
      meeting.startTime,
      (value) => {
        chosen = value;
        changes += 1;
        verdict = null;
        load();
      },
    );
  }

  function verdictPart() {
    /** @type {any} */
    const none = { kind: "none", line: t(isDeciding ? "signin.sending" : "door.ready") };
    const { kind, title, line, undo } = verdict ?? none;
    return h(
      "section",
      { class: `verdict ${kind}`, "aria-label": t("door.verdict") },
      icon(ICONS[kind]),
      h("p", { role: "status" }, title && h("strong", null, title), h("span", null, line)),
      undo && changeButton("second", [icon("undo"), t("door.undo")], undo.name, undo.booking),
    );
  }

  /** @param {string} kind @param {any[]} content @param {string} name of the operation @param {any} booking */
  function changeButton(kind, content, name, booking) {
    return button(kind, [...content, whose(booking.user.name)], () => change(name, booking).then(show));
  }

  /** @param {boolean} hasStarted */
  function rosterPart(hasStarted) {
    const shown = known.roster.filter(isShown);
    const left = missing().length;
    return h(
      "section",
      { class: "stack", "aria-labelledby": "who" },
      h("h2", { id: "who", class: "vh" }, t("door.list")),
      h(
        "form",
        { onsubmit: submit },
        field("code", t("door.field"), {
          type: "search",
          autocomplete: "off",
          autocapitalize: "none",
          spellcheck: "false",
          enterkeyhint: "go",
          oninput: (/** @type {any} */ event) => {
            text = event.target.value.trim();
            if (!CODE.test(text)) redraw();
          },
        }),
      ),
      h(
        "div",
        { class: "row" },
        checkbox("chip", t("door.missing", { count: left }), { checked: isMissingOnly }, (isChecked) => (isMissingOnly = isChecked)),
        checkbox("check", t("door.loud"), { checked: isLoud() }, setLoud),
      ),
      shown.length
        ? list(
          "ol",
          { class: "frame list" },
          shown.map((/** @type {any} */ booking) => ({
            key: booking.id,
            signature: JSON.stringify([booking, hasStarted]),
            build: () => row(booking, hasStarted),
          })),
        )
        : notice("", "list", t(known.roster.length ? "door.noName" : "door.empty")),
      hasStarted && left > 0 && askOnce(
        `absent ${slotId}`,
        "plain",
        { label: t("door.markAll", { count: left }), question: t("door.markAllAsk", { count: left }), yes: t("door.markAllYes"), no: t("form.back") },
        markAll,
      ),
    );
  }

  /** @param {any} booking @param {boolean} hasStarted */
  function row(booking, hasStarted) {
    const enter = () => button("second", [t("door.letIn"), whose(booking.user.name)], () => letIn({ bookingId: booking.id }));
    const undo = (/** @type {string} */ name) => changeButton("plain", [t("door.undo")], name, booking);
    let actions = [hasStarted && changeButton("plain", [t("door.absent")], "markNoShow", booking), enter()];
    if (booking.status !== "CONFIRMED") actions = [h("span", { class: "tag wait" }, icon("clock"), t("door.held"))];
    else if (booking.attendance === "CHECKED_IN") actions = [
      undo("undoCheckIn"),
      h("span", { class: "tag yours" }, icon("tick"), timeOf(booking.checkedInAt, known.slot.timeZone)),
    ];
    else if (booking.attendance === "NO_SHOW") actions = [undo("undoNoShow"), h("span", { class: "tag wait" }, t("roster.absent")), enter()];
    return h("li", { "data-key": booking.id }, about(listName(booking.user), [commas(booking.user.groups)]), h("div", { class: "row" }, actions));
  }

  return {
    title: () => t("door.of", { title: known?.slot.title ?? "" }),
    width: /** @type {"wide"} */ ("wide"),
    render,
    leave() {
      isLeft = true;
      clearTimeout(timer);
      scanner.stop();
      removeEventListener("keydown", catchKeys);
      document.removeEventListener("visibilitychange", stayAwake);
      awake?.release();
    },
  };
}

/** Return the meeting of today that is not over, or else the one that is nearest. @param {any[]} meetings */
function meetingOfToday(meetings) {
  const { from, until } = today();
  const todays = meetings.filter((each) => Date.parse(each.endTime) > Date.parse(from) && Date.parse(each.startTime) < Date.parse(until));
  const isAhead = (/** @type {any} */ each) => Date.parse(each.endTime) > now();
  return todays.find(isAhead) ?? todays.at(-1) ?? meetings.find(isAhead) ?? meetings.at(-1);
}

/** Return what a hand scanner for American keyboards types at a German one. @param {string} code */
function swapped(code) {
  return code.replace(/[YZ]/g, (letter) => (letter === "Y" ? "Z" : "Y"));
}

/** Return a booking with its attendance in the one meeting that was asked for. @param {any} booking */
function flat({ attendanceByMeeting: [attendance], ...booking }) {
  return { ...booking, ...attendance };
}
