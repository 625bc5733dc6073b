// @ts-check
/** The dates of a series: add some, remove some. */
import { say } from "../../../app.js";
import { newKey } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, icon } from "../../../parts.js";
import { readAll } from "../../../store.js";
import { t } from "../../../text.js";
import { Form, zoneText } from "../forms/form.js";
import { holidayField, loadHolidayLists, skippedHolidays } from "../forms/holidays.js";
import { fromLocal, isPast, plusDays, toLocal, whenOf } from "../forms/localtime.js";
import { Actions, conflictList } from "../forms/actions.js";
import { section, toggleButton, withCount } from "../parts.js";

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
    const found = await Promise.all(["PUBLISHED", "DRAFT", "CANCELLED"].map((status) => readAll("seriesSlots", { id: slot.seriesId, status }, "slots")));
    dates = found.flat().filter(Boolean).sort((a, b) => a.startTime.localeCompare(b.startTime));
    for (const id of selected) if (!dates.some((each) => each.id === id)) selected.delete(id);
  }

  /** Return the time a week after the last date. */
  function nextStart() {
    const last = dates[dates.length - 1] ?? slot;
    return { at: plusDays(toLocal(last.startTime, last.timeZone), 7) };
  }

  function toggle() {
    form = form ? null : new Form("series", { starts: [nextStart()], holidayListId: "", allowPast: false });
    added = null;
    if (form) loadHolidayLists();
    redraw();
  }

  /** @param {"STRICT" | "SKIP_CONFLICTS"} onConflict */
  async function add(onConflict) {
    const current = form;
    const result = await current?.send("addSeriesDates", () => {
      const startTimes = current.values.starts.filter((/** @type {any} */ row) => row.at).map((/** @type {any} */ row) => fromLocal(row.at, slot.timeZone) ?? current.fail("starts", t("form.gap")));
      if (!startTimes.length) current.missing("starts");
      return { input: { seriesId: slot.seriesId, startTimes, onConflict, holidayListId: current.values.holidayListId || null, allowPast: current.values.allowPast, idempotencyKey: `${current.key} ${onConflict}` } };
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
      h("label", { class: "check" }, h("input", { type: "checkbox", "aria-label": t("plan.selectOne", { title: text }), checked: selected.has(date.id), onchange: (/** @type {any} */ event) => {
        if (event.target.checked) selected.add(date.id);
        else selected.delete(date.id);
        redraw();
      } })),
      h("p", null, isOwn ? h("strong", { "aria-current": "true" }, name) : h("a", { href: `#/course/${date.id}` }, name), date.title !== slot.title && ` · ${date.title}`),
      date.status === "DRAFT" && h("span", { class: "tag wait" }, t("orga.draft")),
      date.status === "CANCELLED" ? h("span", { class: "tag over" }, t("state.cancelled")) : h("span", { class: "soft" }, t("orga.taken", { taken: date.capacity - date.remaining, count: date.capacity })),
    );
  }

  /** @param {any} current the slot */
  function render(current) {
    slot = current;
    if (!slot.seriesId) return null;
    const conflicts = form?.refusal?.conflicts ?? [];
    const booked = actions.problems.get("removeDates")?.slots ?? [];
    return section("dates", withCount(t("series.title"), String(dates.length)), [
      form && form.render(t("series.add"), [
        form.rows("starts", t("series.another"), nextAfter, { at: { type: "datetime-local", label: t("slotForm.startTime") } }, { help: zoneText(slot.timeZone) }),
        holidayField(form),
        h("p", { class: "soft" }, t("series.copies")),
        (form.values.starts.some((/** @type {any} */ row) => isPast(row.at, slot.timeZone)) || form.values.allowPast) && form.check("allowPast", { label: t("slotForm.allowPast") }),
      ], {
        submit: t("series.add"),
        onsubmit: () => add("STRICT"),
        oncancel: toggle,
        more: conflicts.length > 0 && h("div", { class: "stack tight" }, conflictList(conflicts), h("p", null, button("second", t("plan.skip", { count: conflicts.length }), () => add("SKIP_CONFLICTS")))),
      }),
      added && h("div", { class: "notice yours", role: "status" }, icon("tick"), h("div", { class: "stack tight" },
        h("p", null, t("series.added", { count: added.slots.length })),
        added.existing.length > 0 && h("p", null, t("series.existing", { count: added.existing.length })),
        skippedHolidays(added.skippedHolidays),
        added.conflicts.length > 0 && [h("p", null, t("plan.skipped", { count: added.conflicts.length })), conflictList(added.conflicts)])),
      h("ol", { class: "frame list" }, dates.map(dateRow)),
      selected.size > 0 && h("div", { class: "row" }, actions.askingButton("removeDates", [t("series.remove", { count: selected.size })], t("series.removeQuestion", { count: selected.size }), t("series.removeYes"), () => remove(false))),
      booked.length > 0 && selected.size > 0 && h("div", { class: "notice wait" }, icon("people"), h("div", { class: "stack tight" },
        h("ul", null, booked.map((/** @type {any} */ each) => h("li", null, whenOf(each.startTime, each.timeZone)))),
        h("p", null, actions.button("cancelDates", "final", [t("series.cancelBooked")], () => remove(true))))),
    ], { actions: toggleButton(t("series.add"), form, toggle) });
  }

  function nextAfter() {
    const rows = form?.values.starts ?? [];
    const last = rows[rows.length - 1]?.at;
    return last ? { at: plusDays(last, 7) } : nextStart();
  }

  return { load, render, dates: () => dates };
}
