// @ts-check
/** The periods of a school day: a page to enter them, and a choice of one in a weekly row of a course. */
import { h, redraw } from "../../../kernel.js";
import { site } from "../../../page.js";
import { bones, failure, notice } from "../../../parts.js";
import { run } from "../../../client.js";
import { readerOf } from "../../../store.js";
import { listOf, periods, sentences, t, timeFormat } from "../../../text.js";
import { Form } from "./form.js";
import { DAY_MS } from "./localtime.js";

export const WEEKDAYS = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];
/** A Monday. */
const MONDAY = Date.UTC(2024, 0, 1, 12);
const FIRST = ["1", "08:00", "08:45"];
const BREAK_MS = 300_000;

/** Return the name of a day of the week. @param {number} index from Monday */
export function weekday(index) {
  return timeFormat("UTC", { weekday: "long" }).format(MONDAY + index * DAY_MS);
}

/** @param {string} time of a day */
function msOf(time) {
  return Date.parse(`1970-01-01T${time}Z`);
}

/** Return a new period: after the last one and a break, as long as that. @param {any} [last] */
function nextRow(last) {
  const [name, startTime, endTime] = FIRST;
  if (!last) return { name, startTime, endTime, weekdays: "" };
  const start = msOf(last.endTime) + BREAK_MS;
  const end = start + msOf(last.endTime) - msOf(last.startTime);
  const [from, to] = [start, end].map((at) => (end < DAY_MS ? new Date(at).toISOString().slice(11, 16) : ""));
  return { name: String(Number(last.name) + 1 || ""), startTime: from, endTime: to, weekdays: last.weekdays };
}

/** @param {string} weekdays separated by blanks */
function daysIn(weekdays) {
  return weekdays.split(" ").filter(Boolean);
}

/** Return the number of a weekday, from Sunday. @param {string} name */
function numberOf(name) {
  return (WEEKDAYS.indexOf(name) + 1) % 7;
}

export function openPeriods() {
  /** @type {any} */
  let form = null;
  let saved = "";

  /** @param {any[]} all as the API has them */
  function show(all) {
    form = new Form("periods", { periods: all.map(({ name, startTime, endTime, weekdays }) => (
      { name, startTime: startTime.slice(0, 5), endTime: endTime.slice(0, 5), weekdays: weekdays.join(" ") })) });
  }

  const load = readerOf(async () => show((await run("periods", {})).periods));
  load();

  async function submit() {
    const rows = form.values.periods.map((/** @type {any} */ each) => ({ ...each, weekdays: daysIn(each.weekdays) }));
    const result = await form.send("setPeriods", () => {
      if (rows.some((/** @type {any} */ each) => !each.startTime || !each.endTime)) form.fail("periods", t("slotForm.weeklyRow"));
      return { periods: rows };
    });
    if (!result) return;
    show(result.periods);
    // As the page itself has them.
    const all = form.values.periods.map((/** @type {any} */ each) => ({ ...each, weekdays: daysIn(each.weekdays).map(numberOf) }));
    site.periods = all.length > 0 && all;
    periods.load();
    const count = result.unmatchedSlotCount;
    saved = sentences([t("form.saved"), count && t("periods.unmatched", { count })]);
    redraw();
  }

  function render() {
    const top = h("p", null, h("a", { href: "#/organizer" }, t("orga.title")));
    if (!form) return [top, h("h1", null, t("periods.title")), load.error ? failure(load.error, load) : bones(4)];
    // Usual weekdays, and those of the rows.
    const own = form.values.periods.map((/** @type {any} */ each) => each.weekdays);
    const sets = ["", WEEKDAYS.slice(0, 5).join(" "), WEEKDAYS.slice(0, 4).join(" "), ...WEEKDAYS, ...own];
    const nameOf = (/** @type {string} */ name) => weekday(WEEKDAYS.indexOf(name));
    const options = [...new Set(sets)].map((each) => [each, listOf(daysIn(each).map(nameOf)) || t("periods.everyDay")]);
    const rows = form.rows("periods", t("periods.add"), nextRow, {
      name: { maxlength: 20, label: t("periods.name") },
      startTime: { type: "time", label: t("slotForm.startTime") },
      endTime: { type: "time", label: t("slotForm.endTime") },
      weekdays: { options, label: t("periods.weekdays") },
    }, { label: t("periods.title") });
    return [top, form.render(t("periods.title"), [h("p", { class: "soft" }, t("periods.help")), rows], {
      level: "h1",
      onsubmit: submit,
      more: saved && !form.isTyped && notice("yours", "tick", saved),
    })];
  }

  return { title: () => t("periods.title"), width: /** @type {"wide"} */ ("wide"), render };
}

/** Return the periods that weekdays share, and pairs of neighbors. @param {string[]} weekdays @returns {any[]} */
function choices(weekdays) {
  /** @type {any[][]} */
  const [first, ...others] = weekdays.map((day) => site.periods.filter((/** @type {any} */ each) => (
    !each.weekdays.length || each.weekdays.includes(numberOf(day)))));
  const key = (/** @type {any} */ { name, startTime, endTime }) => `${startTime} ${endTime} ${name}`;
  const shared = first.filter((each) => others.every((day) => day.some((other) => key(other) === key(each))));
  const pairs = shared.flatMap(({ name, startTime, endTime }) => shared
    .filter((other) => other.startTime >= endTime)
    .slice(0, 1)
    .map((next) => ({ name: `${name}–${next.name}`, startTime, endTime: next.endTime })));
  return [...shared, ...pairs];
}

/** Return the name of the period of a weekly row, if it is in one. @param {any} row @param {string[]} weekdays @returns {string} */
function nameIn({ startTime, endTime }, weekdays) {
  return choices(weekdays).find((each) => each.startTime === startTime && each.endTime === endTime)?.name ?? "";
}

/** Give a weekly row the times of a period. @param {any} row @param {string} name @param {string[]} weekdays */
function choose(row, name, weekdays) {
  const { startTime, endTime } = choices(weekdays).find((each) => each.name === name) ?? row;
  return Object.assign(row, { startTime, endTime });
}

/** Return the choice of a period. @param {any} row of a course @param {string[]} weekdays of the row */
export function periodCell(row, weekdays) {
  return {
    label: t("periods.period"),
    options: [["", "–"], ...choices(weekdays).map(({ name }) => [name, name])],
    value: nameIn(row, weekdays),
    onset: (/** @type {string} */ name) => choose(row, name, weekdays),
  };
}

/** Give a weekly row the times of its period on other weekdays. @param {any} row @param {string[]} before @param {string[]} after */
export function movePeriod(row, before, after) {
  return choose(row, nameIn(row, before), after);
}
