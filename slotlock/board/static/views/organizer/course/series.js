// @ts-check
/** The dates of a series: add some, remove some. */
import { say } from "../../../page.js";
import { newKey } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, icon, section } from "../../../parts.js";
import { readAll } from "../../../store.js";
import { compareNames, t } from "../../../text.js";
import { Form, zoneHelp } from "../forms/form.js";
import { holidayField, loadHolidayLists, skippedHolidays } from "../forms/holidays.js";
import { fromLocal, isPast, plusDays, toLocal, whenOf } from "../forms/localtime.js";
import { Actions, taken } from "../forms/actions.js";
import { toggleButton, withCount } from "../parts.js";

/**
 * Return slots in order, whatever their status.
 * @param {string} name of an operation with $status @param {Record<string, any>} variables @returns {Promise<any[]>}
 */
export async function readSlots(name, variables) {
  const found = await Promise.all(["PUBLISHED", "DRAFT", "CANCELLED"].map((status) => readAll(name, { ...variables, status }, "slots")));
  return found.flatMap((each) => each ?? []).sort((a, b) => a.startTime.localeCompare(b.startTime) || compareNames(a.title, b.title));
}

/** Return on which dates of a form a room is taken, with a button to create the others. @param {Form} form @param {() => any} skip */
export function conflictsOf(form, skip) {
  const conflicts = form.refusal?.conflicts ?? [];
  return conflicts.length > 0 && h(
    "div",
    { class: "stack tight" },
    conflictList(conflicts),
    h("p", null, button("second", t("plan.skip", { count: conflicts.length }), skip)),
  );
}

/** Say which dates a series got, and which it did not get. @param {any} result @param {string} text */
export function datesNotice({ existing = [], skippedHolidays: holidays, conflicts }, text) {
  return h("div", { class: "notice yours", role: "status" }, icon("tick"), h("div", { class: "stack tight" },
    h("p", null, text),
    existing.length > 0 && h("p", null, t("series.existing", { count: existing.length })),
    skippedHolidays(holidays),
    conflicts.length > 0 && [h("p", null, t("plan.skipped", { count: conflicts.length })), conflictList(conflicts)]));
}

/** @param {any[]} conflicts dates on which a room is taken */
function conflictList(conflicts) {
  return h("ul", { class: "stack tight" }, conflicts.map((conflict) => h("li", null, taken(conflict))));
}

/** @param {() => any} reload */
export function series(reload) {
  const actions = new Actions();
  /** @type {any[]} */
  let dates = [];
  /** @type {any} */
  let slot = null;
  /** @type {Form | null} */
  let form = null;
  /** What was added and what was not. @type {any} */
  let added = null;
  const selected = new Set();

  /** @param {any} current the slot */
  async function load(current) {
    slot = current;
    if (!slot.seriesId) return;
    dates = await readSlots("seriesSlots", { id: slot.seriesId });
    for (const id of selected) if (!dates.some((each) => each.id === id)) selected.delete(id);
  }

  /** Return the time a week after the last date. */
  function nextStart() {
    const last = dates[dates.length - 1] ?? slot;
    return { at: plusDays(toLocal(last.startTime, last.timeZone), 7) };
  }

  function toggle() {
    form = form ? null : new Form("series", { startTimes: [nextStart()], holidayListId: "", allowPast: false });
    added = null;
    if (form) loadHolidayLists();
    redraw();
  }

  /** @param {"STRICT" | "SKIP_CONFLICTS"} onConflict */
  async function add(onConflict) {
    const current = form;
    const result = await current?.send("addSeriesDates", () => {
      const startTimes = current.values.startTimes
        .filter((/** @type {any} */ row) => row.at)
        .map((/** @type {any} */ row) => fromLocal(row.at, slot.timeZone) ?? current.fail("startTimes", t("form.gap")));
      if (!startTimes.length) current.missing("startTimes");
      return { input: {
        seriesId: slot.seriesId,
        startTimes,
        onConflict,
        holidayListId: current.values.holidayListId || null,
        allowPast: current.values.allowPast,
        idempotencyKey: `${current.key} ${onConflict}`,
      } };
    });
    if (!result) return;
    form = null;
    added = result;
    say(t("series.added", { count: result.slots.length }));
    await reload();
  }

  /** @param {boolean} cancelBooked */
  async function remove(cancelBooked) {
    const input = { seriesId: slot.seriesId, slotIds: [...selected], cancelBooked, idempotencyKey: newKey() };
    if (!(await actions.run("removeDates", "removeSeriesDates", { input }, t("series.removed")))) return;
    selected.clear();
    await reload();
  }

  /** @param {any} date */
  function dateRow(date) {
    const isOwn = date.id === slot.id;
    const text = whenOf(date.startTime, date.timeZone);
    const name = date.status === "CANCELLED" ? h("s", null, text) : text;
    return h(
      "li",
      { "data-key": date.id },
      h(
        "label",
        { class: "check" },
        h("input", { type: "checkbox", "aria-label": t("plan.selectOne", { title: text }), checked: selected.has(date.id), onchange: () => {
          if (!selected.delete(date.id)) selected.add(date.id);
          redraw();
        } }),
      ),
      h(
        "p",
        null,
        isOwn ? h("strong", { "aria-current": "true" }, name) : h("a", { href: `#/course/${date.id}` }, name),
        date.title !== slot.title && ` · ${date.title}`,
      ),
      date.status === "DRAFT" && h("span", { class: "tag wait" }, t("orga.draft")),
      date.status === "CANCELLED"
        ? h("span", { class: "tag over" }, t("state.cancelled"))
        : h("span", { class: "soft" }, t("orga.taken", { taken: date.capacity - date.remaining, count: date.capacity })),
    );
  }

  /** @param {any} current the slot */
  function render(current) {
    slot = current;
    if (!slot.seriesId) return null;
    const booked = actions.problems.get("removeDates")?.slots ?? [];
    return section("dates", withCount(t("series.title"), String(dates.length)), [
      form && form.render(t("series.add"), [
        form.rows(
          "startTimes",
          t("series.another"),
          nextAfter,
          { at: { type: "datetime-local", label: t("slotForm.startTime") } },
          { help: zoneHelp(slot.timeZone) },
        ),
        holidayField(form),
        h("p", { class: "soft" }, t("series.copies")),
        (form.values.startTimes.some((/** @type {any} */ row) => isPast(row.at, slot.timeZone)) || form.values.allowPast) && form.check(
          "allowPast",
          { label: t("slotForm.allowPast") },
        ),
      ], {
        submit: t("series.add"),
        onsubmit: () => add("STRICT"),
        oncancel: toggle,
        more: conflictsOf(form, () => add("SKIP_CONFLICTS")),
      }),
      added && datesNotice(added, t("series.added", { count: added.slots.length })),
      h("ol", { class: "frame list" }, dates.map(dateRow)),
      selected.size > 0 && h(
        "div",
        { class: "row" },
        actions.askingButton(
          "removeDates",
          [t("series.remove", { count: selected.size })],
          t("series.removeQuestion", { count: selected.size }),
          t("form.remove"),
          () => remove(false),
        ),
      ),
      booked.length > 0 && selected.size > 0 && h("div", { class: "notice wait" }, icon("people"), h("div", { class: "stack tight" },
        h("ul", null, booked.map((/** @type {any} */ each) => h("li", null, whenOf(each.startTime, each.timeZone)))),
        h("p", null, actions.button("cancelDates", "final", [t("series.cancelBooked")], () => remove(true))))),
    ], { actions: toggleButton(t("series.add"), form, toggle) });
  }

  function nextAfter() {
    const rows = form?.values.startTimes ?? [];
    const last = rows[rows.length - 1]?.at;
    return last ? { at: plusDays(last, 7) } : nextStart();
  }

  return { load, render, dates: () => dates };
}
