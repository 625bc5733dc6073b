// @ts-check
/** Move the dates of a series, or the meetings of a course, to another time or room from one of them on. */
import { say } from "../../../page.js";
import { now } from "../../../clock.js";
import { h, redraw } from "../../../kernel.js";
import { t } from "../../../text.js";
import { Form } from "../forms/form.js";
import { DAY_MS, fromLocal, plusDays, toLocal, whenOf } from "../forms/localtime.js";
import { addTyped, loadResources, RESOURCES } from "../forms/resources.js";
import { changedTimes, isSame, timetableOf } from "../forms/slotform.js";
import { toggleButton } from "../parts.js";

/** @param {() => any[]} datesOf returns the slots of the series @param {() => any} reload */
export function mover(datesOf, reload) {
  /** @type {Form | null} */
  let form = null;

  /** Return what can be moved: slots of a series, or meetings of a course. @param {any} slot @returns {any[]} */
  function movable(slot) {
    const all = slot.seriesId
      ? datesOf().filter((each) => each.status !== "CANCELLED")
      : slot.meetings.map((/** @type {any} */ each) => ({ ...each, id: each.startTime }));
    return all.filter((/** @type {any} */ each) => Date.parse(each.startTime) > now());
  }

  /** @param {any} slot @param {string} [from] */
  function formOf(slot, from) {
    const all = movable(slot);
    const first = all.find((each) => each.id === from) ?? all.find((each) => each.id === slot.id) ?? all[0];
    const [startTime, endTime] = [first.startTime, first.endTime].map((each) => toLocal(each, slot.timeZone));
    return new Form("move", { from: first.id, startTime, endTime, location: first.location, resourcesText: "", teachersText: "" }, RESOURCES, first);
  }

  /** @param {any} slot */
  function toggle(slot) {
    form = form ? null : formOf(slot);
    if (form) loadResources();
    redraw();
    form?.focusFirst();
  }

  /** Return the change of the slots of a series from one on. @param {Form} current @param {any} slot */
  function changedSeries(current, slot) {
    const before = movable(slot).find((each) => each.id === current.values.from);
    const location = current.text("location");
    const { resourceIds } = current.input();
    return {
      slotId: before.id,
      scope: "THIS_AND_FOLLOWING",
      ...changedTimes(current, before, slot.timeZone),
      ...(location !== before.location && { location }),
      ...(!isSame(resourceIds, new Form("move", {}, RESOURCES, before).input().resourceIds) && { resourceIds }),
    };
  }

  /**
   * Return the new meetings of a course: those of the same weekday and time move by the same days and to the same time.
   * @param {Form} current @param {any} slot
   */
  function changedCourse(current, slot) {
    const { from, startTime, endTime } = current.values;
    const zone = slot.timeZone;
    const local = (/** @type {string} */ at) => toLocal(at, zone);
    const isAlike = (/** @type {string} */ at) => at >= from
      && local(at).slice(11) === local(from).slice(11)
      && (daysOf(local(at)) - daysOf(local(from))) % 7 === 0;
    const extra = slot.meetings.map((/** @type {any} */ meeting) => {
      if (!isAlike(meeting.startTime)) return meeting;
      const later = daysOf(local(meeting.startTime)) - daysOf(local(from));
      const [start, end] = [startTime, endTime].map((each) => (each ? fromLocal(plusDays(each, later), zone) : null));
      if (!start || !end) current.fail("startTime", t(startTime && endTime ? "form.gap" : "form.missing"));
      return { startTime: start, endTime: end };
    });
    return { slotId: slot.id, timetable: timetableOf(extra, zone) };
  }

  /** @param {any} slot */
  async function move(slot) {
    const current = /** @type {Form} */ (form);
    const isDone = await current.send("updateSlot", async () => {
      await addTyped(current);
      return { input: slot.seriesId ? changedSeries(current, slot) : changedCourse(current, slot) };
    });
    if (!isDone) return;
    form = null;
    say(t("move.done"));
    await reload();
  }

  /** @param {any} slot */
  function render(slot) {
    const all = slot.status === "CANCELLED" ? [] : movable(slot);
    if (all.length < 2) return null;
    const current = form;
    const choose = (/** @type {any} */ event) => {
      current && Object.assign(current.values, formOf(slot, event.target.value).values);
      redraw();
    };
    const options = all.map((each) => [each.id, whenOf(each.startTime, slot.timeZone)]);
    return h(
      "section",
      { class: "stack", "data-key": "move", "aria-label": t("move.title") },
      h("p", null, toggleButton(t("move.title"), form, () => toggle(slot))),
      current && current.render(t("move.title"), [
        current.field("from", { options, onchange: choose, help: current.help(slot.seriesId ? "series" : "course") }),
        h("div", { class: "columns" }, current.time("startTime", slot.timeZone), current.time("endTime", slot.timeZone, { label: t("slotForm.endTime") })),
        slot.seriesId && [current.field("location", { maxlength: 200, label: t("slotForm.location") }), current.show("teachers", "resources")],
      ], { submit: t("move.submit"), onsubmit: () => move(slot), oncancel: () => toggle(slot) }),
    );
  }

  return { render };
}

/** Return the day of a local time as a number. @param {string} local */
function daysOf(local) {
  return Math.round(Date.parse(`${local.slice(0, 10)}T00:00Z`) / DAY_MS);
}
