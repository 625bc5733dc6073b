// @ts-check
/** A slot as a form: one that meets once, a course with many meetings, or a weekly series of slots. */
import { h } from "../../../kernel.js";
import { site } from "../../../page.js";
import { t } from "../../../text.js";
import { Form, zoneHelp } from "./form.js";
import { groupsField } from "./groups.js";
import { dayName, holidayField, isHoliday, loadHolidayLists } from "./holidays.js";
import { GROUP_LIMITS, QUEUE_ONLY } from "./limits.js";
import { DAY_MS, fromLocal, isPast, isZone, plusDays, toLocal } from "./localtime.js";
import { movePeriod, periodCell, weekday, WEEKDAYS } from "./periods.js";
import { loadResources, RESOURCES } from "./resources.js";

const WORKDAYS = "workdays";
const DAY_MINUTES = 1440;
const USUAL_MINUTES = 90;
/** @type {import("./form.js").Field[]} */
const SLOT_FIELDS = [
  { name: "title", required: true, maxlength: 200 },
  // Several dates of a series have none.
  { name: "number", maxlength: 40, read: (form, { name }) => (form.values.form === "series" ? null : form.text(name)) },
  { name: "description", tag: "textarea", rows: 2, help: "campaignForm.descriptionHelp" },
  { name: "timeZone", default: "UTC", list: "zones", autocomplete: "off", onset: () => null, read: readZone },
  { name: "location", maxlength: 200 },
  { name: "meetingUrl", type: "url", inputmode: "url", maxlength: 2000 },
  ...RESOURCES,
  { name: "capacity", kind: "count", default: 12, required: true, min: 1 },
  groupsField("onlyForGroups"),
  { name: "kind", kind: "choice", default: "COURSE", options: ["COURSE", "MEETING", "OTHER"] },
  { name: "holdMinutes", kind: "duration", default: 5, required: true },
  { name: "holdCooldownMinutes", kind: "duration", default: 0, required: true, ofNone: 1 },
  { name: "reminderMinutes", kind: "duration", ofMail: true },
  { name: "cancelCutoffMinutes", kind: "duration", default: 0, required: true, ofNone: DAY_MINUTES },
  { name: "waitlistCapacity", kind: "count", default: 100, required: true },
  { name: "waitlistOfferMinutes", kind: "duration" },
  ...GROUP_LIMITS,
  QUEUE_ONLY,
  { name: "choiceGroup", maxlength: 100 },
  { name: "isDraft", sent: "draft", kind: "check", default: true },
  { name: "allowPast", kind: "check", default: false },
];

/** What is of one course alone, so that the next one does not begin with it. */
const OWN = ["title", "description", "location", "meetingUrl", "teachers", "resources", "choiceGroup", "onlyForGroups", "number", "timeZone"];

/**
 * Return the form of a slot, or of a new one, which begins with the values of the one before: courses of a term differ in little.
 * @param {any} slot or null @param {string} timeZone @param {Record<string, any> | null} [before]
 */
export function slotForm(slot, timeZone, before = null) {
  loadResources();
  loadHolidayLists();
  return new Form("slotForm", {
    form: isCourse(slot) ? "course" : "once",
    timeZone,
    startTime: toLocal(slot?.startTime, timeZone),
    endTime: toLocal(slot?.endTime, timeZone),
    first: "",
    last: "",
    interval: "1",
    ...meetingsOf(slot, timeZone),
    scope: "THIS",
    ...(before && { ...Object.fromEntries(Object.entries(JSON.parse(JSON.stringify(before))).filter(([name]) => !OWN.includes(name))), isLikeBefore: true }),
  }, SLOT_FIELDS, slot);
}

/** @param {any} slot or null */
const isCourse = (slot) => slot?.meetings.length > 1;

/** Return the values of a form for the meetings of a course, or of a new one. @param {any} slot or null @param {string} zone */
function meetingsOf(slot, zone) {
  const rowOf = (/** @type {any} */ each) => ({ startTime: toLocal(each.startTime, zone), endTime: toLocal(each.endTime, zone), original: each });
  return { holidays: [], ...(isCourse(slot) ? inWeeks(slot.meetings.map(rowOf)) : { weekly: [nextWeekly()], extra: [] }) };
}

/** Return the fields. @param {Form} form @param {any} slot or null for a new one */
export function slotFields(form, slot) {
  const { values } = form;
  const zones = /** @type {any} */ (Intl).supportedValuesOf?.("timeZone") ?? [];
  return [
    values.isLikeBefore && h("p", { class: "soft", "data-key": "like" }, t("slotForm.likeBefore")),
    slot?.seriesId && form.select("scope", scopes()),
    form.show("title", "description", [values.form !== "series" && "number", "teachers"], ["resources", "location"]),
    !slot && form.select("form", ["once", "series", "course"].map((each) => [each, form.label(each)]), { help: form.help(values.form) }),
    times(form, slot),
    (isOver(form) || values.allowPast) && form.check("allowPast"),
    form.show(["capacity", "groupLimitsEach"], "onlyForGroups", !slot && "isDraft"),
    form.more(
      [form.label("ofPlace"), "meetingUrl", ["timeZone", "kind"]],
      [form.label("ofGroups"), "groupLimits", !slot && "choiceGroup", "isQueueOnly"],
      [form.label("ofWaiting"), ["waitlistCapacity", "waitlistOfferMinutes"]],
      [form.label("ofTimes"), "cancelCutoffMinutes", ["holdMinutes", "holdCooldownMinutes"], "reminderMinutes"],
    ),
    h("datalist", { id: "zones" }, zones.map((/** @type {string} */ zone) => h("option", { value: zone }))),
  ];
}

/** @param {Form} form @param {any} field */
function readZone(form, { name }) {
  return isZone(form.values[name]) ? form.values[name] : form.fail(name, t("slotForm.unknownZone"));
}

/** Whether a slot is over, the first of a series or all meetings of a course, so that somebody has to say that this is intended. @param {Form} form */
function isOver(form) {
  const { values, zone } = form;
  if (values.form !== "course") return isPast(values.endTime, zone);
  const ends = [values.last && `${values.last}T23:59`, ...values.extra.map((/** @type {any} */ row) => row.endTime)];
  return ends.some(Boolean) && ends.filter(Boolean).every((local) => isPast(local, zone));
}

/** Return the choice of slots of a series. @returns {Array<[string, string]>} */
export function scopes() {
  return ["THIS", "THIS_AND_FOLLOWING", "ALL"].map((each) => [each, t(`scope.${each}`)]);
}

/** @param {Form} form @param {any} slot */
function times(form, slot) {
  const { values, zone } = form;
  const help = zoneHelp(zone);
  if (values.form === "course") {
    return [
      values.weekly.length > 0 && h("div", { class: "columns" }, form.field("first", { type: "date" }), form.field("last", { type: "date" })),
      form.rows(
        "weekly",
        form.label("addWeekly"),
        nextWeekly,
        {
          weekday: {
            options: [...WEEKDAYS.map((each, index) => [each, weekday(index)]), [WORKDAYS, form.label(WORKDAYS)]],
            onset: (/** @type {string} */ day, /** @type {any} */ row) => onDay(row, day),
          },
          ...(site.periods && { period: (/** @type {any} */ row) => periodCell(row, weekdaysOf(row.weekday)) }),
          startTime: { type: "time", onset: startAt },
          endTime: { type: "time" },
        },
        { help },
      ),
      values.weekly.length > 0 && [holidayField(form), form.days("holidays")],
      form.rows(
        "extra",
        form.label("addMeeting"),
        nextMeeting,
        { startTime: { type: "datetime-local" }, endTime: { type: "datetime-local" } },
        { label: form.label(values.weekly.length ? "extra" : "meetings"), help },
      ),
    ];
  }
  const follow = () => {
    if (values.startTime && (!values.endTime || values.endTime <= values.startTime))
      form.set("endTime", plusDays(values.startTime, USUAL_MINUTES / DAY_MINUTES));
  };
  const isSeries = values.form === "series";
  return [
    h("div", { class: "columns" },
      form.time("startTime", zone, { required: true, onchange: follow, label: form.label(isSeries ? "firstStart" : "startTime") }),
      form.time("endTime", zone, { required: true })),
    ...(isSeries ? [
      h("div", { class: "columns" },
        form.select("interval", ["1", "2", "3", "4"].map((each) => [each, t("slotForm.weeks", { count: Number(each) })])),
        form.field("last", { type: "date", onset: () => null, label: form.label("lastDate") })),
      holidayField(form),
      form.days("holidays"),
      preview(form),
    ] : []),
  ];
}

/** Return a new meeting of each week: on the day after the last one, at its times or in its period. @param {any} [last] */
function nextWeekly(last = { startTime: "15:00", endTime: "16:30" }) {
  return onDay({ ...last }, WEEKDAYS[(WEEKDAYS.indexOf(last.weekday) + 1) % WEEKDAYS.length]);
}

/** Return a weekly row on another day. @param {any} row @param {string} day */
function onDay(row, day) {
  const before = row.weekday;
  row.weekday = day;
  return before && site.periods ? movePeriod(row, weekdaysOf(before), weekdaysOf(day)) : row;
}

/** Return the weekdays of a row. @param {string} day */
function weekdaysOf(day) {
  return day === WORKDAYS ? WEEKDAYS.slice(0, 5) : [day];
}

/**
 * Return meetings as the form has them: the rows of a week from a first day to a last one, what is left out, and those that follow none.
 * @param {any[]} meetings with local times
 */
function inWeeks(meetings) {
  /** @type {Record<string, Record<string, any[]>>} Meetings by time and weekday. */
  const alike = {};
  for (const meeting of meetings) {
    const [[day, startTime], [lastDay, endTime]] = [meeting.startTime, meeting.endTime].map((each) => [each.slice(0, 10), each.slice(11)]);
    const time = lastDay === day && lengthOf({ startTime, endTime }) <= DAY_MS / 2 ? `${startTime} ${endTime}` : "";
    ((alike[time] ??= {})[weekdayOf(day)] ??= []).push({ ...meeting, day });
  }
  const { "": byThemselves = {}, ...regular } = alike;
  const extra = Object.values(byThemselves).flat();
  const weekly = [];
  /** @type {any[]} */
  const inWeek = [];
  for (const [time, found] of Object.entries(regular)) {
    const [startTime, endTime] = time.split(" ");
    const isDaily = WEEKDAYS.slice(0, 5).every((each) => found[each]);
    if (isDaily) weekly.push({ weekday: WORKDAYS, startTime, endTime });
    for (const [weekday, alike] of Object.entries(found)) {
      const isWorkday = isDaily && WEEKDAYS.indexOf(weekday) < 5;
      if (!isWorkday && alike.length > 1) weekly.push({ weekday, startTime, endTime });
      (isWorkday || alike.length > 1 ? inWeek : extra).push(...alike);
    }
  }
  const days = [...new Set(inWeek.map(({ day }) => day))].sort();
  const [first = "", last = ""] = [days[0], days[days.length - 1]];
  const left = [];
  let count = 0;
  for (let day = first; day && day <= last; day = plusDays(day, 1)) {
    const due = weekly.filter((row) => row.weekday === weekdayOf(day) || (row.weekday === WORKDAYS && WEEKDAYS.indexOf(weekdayOf(day)) < 5)).length;
    if (days.includes(day)) count += due;
    else if (due) left.push({ day });
  }
  // Each day has all of its meetings or none, and few have none.
  if (count !== inWeek.length || left.length > days.length / 2) return { weekly: [], extra: meetings };
  return { weekly, first, last, holidays: left, extra: extra.sort((a, b) => a.startTime.localeCompare(b.startTime)) };
}

/** @param {string} day */
function weekdayOf(day) {
  return WEEKDAYS[(new Date(day).getUTCDay() + 6) % 7];
}

/** Return a new meeting: a day after the last one. @param {any} [last] */
function nextMeeting({ startTime, endTime } = { startTime: "", endTime: "" }) {
  return { startTime: startTime && plusDays(startTime, 1), endTime: endTime && plusDays(endTime, 1) };
}

/** Say which dates a series will have. @param {Form} form */
function preview(form) {
  const { startTime, last, interval } = form.values;
  if (!startTime || !last) return null;
  const left = new Set(form.dayList("holidays"));
  const dates = [];
  for (let day = startTime.slice(0, 10); day <= last && dates.length < 500; day = plusDays(day, 7 * Number(interval)))
    if (!left.has(day) && !isHoliday(form.values.holidayListId, day)) dates.push(day);
  if (!dates.length) return null;
  return h(
    "p",
    { class: "soft", "data-key": "preview" },
    t("slotForm.preview", { count: dates.length, first: dayName(dates[0]), last: dayName(dates[dates.length - 1]) }),
  );
}

/** Return the input of `updateSlot`: only what was changed, as other slots of the series may differ in the rest. @param {Form} form @param {any} slot */
export function changedSlot(form, slot) {
  const before = new Form("slotForm", { timeZone: slot.timeZone }, SLOT_FIELDS, slot).input();
  const facts = Object.fromEntries(Object.entries(form.input()).filter(([name, value]) => !isSame(value, before[name])));
  const when = form.values.form === "course" ? changedCourse(form, slot) : changedTimes(form, slot, form.zone);
  return { slotId: slot.id, ...facts, ...when, scope: form.values.scope, allowPast: form.values.allowPast };
}

/** Whether two values are equal, also lists of equal values. @param {any} one @param {any} other */
export function isSame(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Return the start and the end of a form, if one of them was changed. @param {Form} form @param {any} slot @param {string} zone */
export function changedTimes(form, slot, zone) {
  const [startTime, endTime] = ["startTime", "endTime"].map((each) => form.instant(each, zone, slot[each]));
  return isSame([startTime, endTime], [slot.startTime, slot.endTime]) ? {} : { startTime, endTime };
}

/** Return the input of `createSlot`. @param {Form} form @param {string} campaignId */
export function newSlot(form, campaignId) {
  const { zone } = form;
  const facts = { ...form.input(), campaignId };
  if (form.values.form === "course") return { ...facts, timetable: timetable(form) };
  return { ...facts, startTime: form.instant("startTime", zone), endTime: form.instant("endTime", zone) };
}

/** Return the rule of a weekly series until the end of its last day. @param {Form} form */
export function weeklyRule(form) {
  const { last, interval } = form.values;
  const { zone } = form;
  if (!last) return form.missing("last");
  const until = fromLocal(`${last}T23:59`, zone) ?? fromLocal(`${last}T12:00`, zone) ?? "";
  return `FREQ=WEEKLY;INTERVAL=${interval};UNTIL=${until.slice(0, 19).replace(/[-:]/g, "")}Z`;
}

/** Return how long a weekly meeting takes, in ms; one that ends before it begins ends on the next day. @param {{startTime: string, endTime: string}} row */
function lengthOf({ startTime, endTime }) {
  const [start, end] = [startTime, endTime].map((each) => Date.parse(`1970-01-01T${each}Z`));
  return (end - start + DAY_MS) % DAY_MS || DAY_MS;
}

/** Let a weekly meeting start at another time, and take as long as before. @param {string} startTime @param {any} row */
function startAt(startTime, row) {
  if (row.startTime && row.endTime && startTime) row.endTime = plusDays(`2031-05-05T${startTime}`, lengthOf(row) / DAY_MS).slice(11);
  row.startTime = startTime;
}

/** @param {Form} form */
function timetable(form) {
  const extra = extraMeetings(form);
  if (!form.values.weekly.length) return extra.length ? timetableOf(extra, form.zone) : form.missing("weekly");
  const { first, last } = form.values;
  const weekly = form.values.weekly.flatMap((/** @type {any} */ row) => weekdaysOf(row.weekday).map((each) => ({ ...row, weekday: each })));
  if (!first) form.missing("first");
  if (!last) form.missing("last");
  if (weekly.some((/** @type {any} */ row) => !row.startTime || !row.endTime)) form.fail("weekly", t("slotForm.weeklyRow"));
  // One of more than half a day has its start and end exchanged.
  else if (weekly.some((/** @type {any} */ row) => lengthOf(row) > DAY_MS / 2)) form.fail("weekly", t("slotForm.weeklyLong"));
  return { first, last, weekly, holidays: form.dayList("holidays"), holidayListId: form.values.holidayListId || null, extra };
}

/** Return the meetings of a course if they were changed. @param {Form} form @param {any} slot */
function changedCourse(form, slot) {
  const unchanged = new Form("slotForm", { timeZone: slot.timeZone, ...meetingsOf(slot, slot.timeZone) });
  const [before, after] = [unchanged, form].map((each) => [each.zone, timetable(each)]);
  return isSame(before, after) ? {} : { timetable: after[1] };
}

/** Return a timetable of meetings that follow no rule. @param {any[]} extra @param {string} zone */
export function timetableOf(extra, zone) {
  const days = extra.map((each) => toLocal(each.startTime, zone).slice(0, 10)).sort();
  return { first: days[0], last: days[days.length - 1], weekly: [], holidays: [], extra };
}

/** @param {Form} form */
function extraMeetings(form) {
  const { zone } = form;
  return form.values.extra.map((/** @type {any} */ row) => {
    const at = (/** @type {"startTime" | "endTime"} */ part) => {
      const original = row.original?.[part];
      const instant = original && row[part] === toLocal(original, zone) ? original : fromLocal(row[part], zone);
      if (!instant) form.fail("extra", t("slotForm.meetingRow"));
      return instant;
    };
    return { startTime: at("startTime"), endTime: at("endTime") };
  });
}
