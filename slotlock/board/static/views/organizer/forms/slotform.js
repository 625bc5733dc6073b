// @ts-check
/** A slot as a form: one that meets once, a course with many meetings, or a weekly series of slots. */
import { site } from "../../../app.js";
import { h } from "../../../kernel.js";
import { dayOf, format, t } from "../../../text.js";
import { COUNT, Form, zoneText } from "./form.js";
import { durationValues } from "./duration.js";
import { holidayField, isHoliday, loadHolidayLists } from "./holidays.js";
import { DAY_MS, allZones, fromLocal, isPast, isZone, plusDays, plusMinutes, toLocal } from "./localtime.js";
import { loadResources, resourceField } from "./resources.js";

const WEEKDAYS = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];
/** A Monday. */
const MONDAY = Date.UTC(2024, 0, 1, 12);
const DAY_MINUTES = 1440;
/** A weekly meeting that takes longer has its start and end exchanged. */
const MAX_MINUTES = 720;
const DEFAULTS = { capacity: 12, kind: "COURSE", holdMinutes: 5, holdCooldownMinutes: 0, cancelCutoffMinutes: 0, waitlistCapacity: 100 };

/**
 * Return the form of a slot, or of a new one, which begins with the values of the one before: courses of a term differ in little.
 * @param {any} slot or null
 * @param {string} zone
 * @param {Record<string, any> | null} [before]
 */
export function slotForm(slot, zone, before = null) {
  loadResources();
  loadHolidayLists();
  return new Form("slotForm", slotValues(slot, zone, before));
}

/** @param {any} slot or null @param {string} zone @param {Record<string, any> | null} [before] */
function slotValues(slot, zone, before = null) {
  const local = (/** @type {string | undefined} */ at) => (at ? toLocal(at, zone) : "");
  const isCourse = (slot?.meetings.length ?? 0) > 1;
  return {
    title: slot?.title ?? "",
    description: slot?.description ?? "",
    form: isCourse ? "course" : "once",
    timeZone: zone,
    startTime: local(slot?.startTime),
    endTime: local(slot?.endTime),
    first: "",
    last: "",
    weekly: [newWeekly()],
    interval: "1",
    holidays: [],
    holidayListId: "",
    extra: isCourse ? slot.meetings.map((/** @type {any} */ each) => ({ startTime: local(each.startTime), endTime: local(each.endTime), original: each })) : [],
    location: slot?.location ?? "",
    meetingUrl: slot?.meetingUrl ?? "",
    resources: slot?.resources ?? [],
    resourceText: "",
    capacity: String(slot?.capacity ?? DEFAULTS.capacity),
    kind: slot?.kind ?? DEFAULTS.kind,
    ...durationValues("holdMinutes", slot?.holdMinutes ?? DEFAULTS.holdMinutes, 1),
    ...durationValues("holdCooldownMinutes", slot?.holdCooldownMinutes ?? DEFAULTS.holdCooldownMinutes, 1),
    ...durationValues("reminderMinutes", slot?.reminderMinutes, 60),
    ...durationValues("cancelCutoffMinutes", slot?.cancelCutoffMinutes ?? DEFAULTS.cancelCutoffMinutes, DAY_MINUTES),
    waitlistCapacity: String(slot?.waitlistCapacity ?? DEFAULTS.waitlistCapacity),
    ...durationValues("waitlistOfferMinutes", slot?.waitlistOfferMinutes, 60),
    choiceGroup: slot?.choiceGroup ?? "",
    ...Form.limitValues("groupLimits", slot?.groupLimits),
    isQueueOnly: slot?.admission === "QUEUE_ONLY",
    isDraft: true,
    scope: "THIS",
    allowPast: false,
    ...(before && { ...JSON.parse(JSON.stringify(before)), title: "", description: "", location: "", meetingUrl: "", resources: [], choiceGroup: "", isLikeBefore: true }),
  };
}

/** Return the fields. @param {Form} form @param {any} slot or null for a new one */
export function slotFields(form, slot) {
  const { values } = form;
  return [
    values.isLikeBefore && h("p", { class: "soft", "data-key": "like" }, t("slotForm.likeBefore")),
    slot?.seriesId && form.select("scope", scopes()),
    form.field("title", { required: true, maxlength: 200 }),
    !slot && form.select("form", ["once", "series", "course"].map((each) => [each, form.label(each)]), { help: form.help(values.form) }),
    times(form, slot),
    (isOver(form) || values.allowPast) && form.check("allowPast"),
    h("div", { class: "columns" }, form.field("capacity", { ...COUNT, min: 1 }), form.limitOfEach("groupLimits")),
    resourceField(form),
    form.field("location", { maxlength: 200 }),
    form.field("meetingUrl", { type: "url", inputmode: "url", maxlength: 2000 }),
    !slot && form.check("isDraft"),
    form.more(["description", "groupLimits", "isQueueOnly", "choiceGroup", "waitlistOfferMinutes", "reminderMinutes"], [
      form.field("description", { tag: "textarea", rows: 4, help: t("campaignForm.descriptionHelp") }),
      form.limits("groupLimits"),
      h("div", { class: "columns" },
        form.field("timeZone", { list: "zones", onset: () => null, autocomplete: "off" }),
        form.select("kind", ["COURSE", "MEETING", "OTHER"].map((kind) => [kind, form.label(kind)]))),
      h("datalist", { id: "zones" }, allZones().map((zone) => h("option", { value: zone }))),
      h("div", { class: "columns" }, form.field("waitlistCapacity", COUNT), form.duration("waitlistOfferMinutes")),
      h("div", { class: "columns" }, form.duration("cancelCutoffMinutes"), form.duration("holdMinutes"), form.duration("holdCooldownMinutes")),
      site.sendsMail && form.duration("reminderMinutes"),
      !slot && form.field("choiceGroup", { maxlength: 100 }),
      form.check("isQueueOnly", { help: t("campaignForm.isQueueOnlyHelp") }),
    ]),
  ];
}

/** Whether a slot is over, the first of a series or all meetings of a course, so that somebody has to say that this is intended. @param {Form} form */
function isOver({ values }) {
  if (!isZone(values.timeZone)) return false;
  if (values.form !== "course") return isPast(values.endTime, values.timeZone);
  const ends = [values.last && `${values.last}T23:59`, ...values.extra.map((/** @type {any} */ row) => row.endTime)];
  return ends.some(Boolean) && ends.filter(Boolean).every((local) => isPast(local, values.timeZone));
}

/** Return the choice of slots of a series. @returns {Array<[string, string]>} */
export function scopes() {
  return ["THIS", "THIS_AND_FOLLOWING", "ALL"].map((each) => [each, t(`scope.${each}`)]);
}

/** @param {Form} form @param {any} slot */
function times(form, slot) {
  const { values } = form;
  const zone = isZone(values.timeZone) ? values.timeZone : "UTC";
  const help = zoneText(zone);
  if (values.form === "course") {
    return [
      ...(slot ? [] : [
        h("div", { class: "columns" }, form.field("first", { type: "date" }), form.field("last", { type: "date" })),
        form.rows("weekly", form.label("addWeekly"), newWeekly, { weekday: { options: WEEKDAYS.map((each, index) => [each, weekday(index)]) }, startTime: { type: "time" }, endTime: { type: "time" } }, { help }),
        holidayField(form),
        form.days("holidays"),
      ]),
      form.rows("extra", form.label("addMeeting"), () => ({ startTime: "", endTime: "" }), { startTime: { type: "datetime-local" }, endTime: { type: "datetime-local" } }, { label: form.label(slot ? "meetings" : "extra"), help }),
    ];
  }
  const follow = () => {
    if (values.startTime && (!values.endTime || values.endTime <= values.startTime)) form.set("endTime", plusMinutes(values.startTime, 90));
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

/** Return a new meeting of each week. */
function newWeekly() {
  return { weekday: "MONDAY", startTime: "15:00", endTime: "16:30" };
}

/** Say which dates a series will have. @param {Form} form */
function preview(form) {
  const { startTime, last, interval } = form.values;
  if (!startTime || !last) return null;
  const left = new Set(form.dayList("holidays"));
  const dates = [];
  for (let day = startTime.slice(0, 10); day <= last && dates.length < 500; day = plusDays(day, 7 * Number(interval))) if (!left.has(day) && !isHoliday(form.values.holidayListId, day)) dates.push(day);
  if (!dates.length) return null;
  const [first] = dates;
  const name = (/** @type {string} */ day) => dayOf(`${day}T12:00:00Z`, "UTC");
  return h("p", { class: "soft", "data-key": "preview" }, t("slotForm.preview", { count: dates.length, first: name(first), last: name(dates[dates.length - 1]) }));
}

/** Return the name of a day of the week. @param {number} index from Monday */
function weekday(index) {
  return format("UTC", { weekday: "long" }).format(MONDAY + index * DAY_MS);
}

/** Return the input of `updateSlot`: only what was changed, as other slots of the series may differ in the rest. @param {Form} form @param {any} slot */
export function changedSlot(form, slot) {
  const { choiceGroup: _, ...all } = slotFacts(form);
  const before = /** @type {Record<string, any>} */ (slotFacts(new Form("slotForm", slotValues(slot, slot.timeZone))));
  const facts = Object.fromEntries(Object.entries(all).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
  const zone = form.values.timeZone;
  const isCourse = form.values.form === "course";
  const when = isCourse ? changedCourse(form, slot) : { startTime: form.instant("startTime", zone, slot.startTime), endTime: form.instant("endTime", zone, slot.endTime) };
  const isSame = "startTime" in when && when.startTime === slot.startTime && when.endTime === slot.endTime;
  return { slotId: slot.id, ...facts, ...(isSame ? {} : when), scope: form.values.scope, allowPast: form.values.allowPast };
}

/** Return the input of `createSlot`. @param {Form} form @param {string} campaignId */
export function newSlot(form, campaignId) {
  const zone = form.values.timeZone;
  const facts = { ...slotFacts(form), campaignId, draft: form.values.isDraft, allowPast: form.values.allowPast };
  if (form.values.form === "course") return { ...facts, timetable: timetable(form) };
  return { ...facts, startTime: form.instant("startTime", zone), endTime: form.instant("endTime", zone) };
}

/** Return the rule of a weekly series until the end of its last day. @param {Form} form */
export function weeklyRule(form) {
  const { last, interval, timeZone } = form.values;
  if (!last) return form.missing("last");
  const until = fromLocal(`${last}T23:59`, timeZone) ?? fromLocal(`${last}T12:00`, timeZone) ?? "";
  return `FREQ=WEEKLY;INTERVAL=${interval};UNTIL=${until.slice(0, 19).replace(/[-:]/g, "")}Z`;
}

/** @param {Form} form */
function slotFacts(form) {
  const { values } = form;
  if (!isZone(values.timeZone)) form.fail("timeZone", t("slotForm.unknownZone"));
  if (values.resourceText.trim()) form.fail("resources", t("slotForm.resourceOpen"));
  return {
    title: form.text("title", true),
    description: form.text("description"),
    timeZone: values.timeZone,
    location: form.text("location"),
    meetingUrl: form.text("meetingUrl"),
    resourceIds: values.resources.map((/** @type {any} */ each) => each.id),
    capacity: form.integer("capacity"),
    kind: values.kind,
    holdMinutes: form.minutes("holdMinutes"),
    holdCooldownMinutes: form.minutes("holdCooldownMinutes"),
    reminderMinutes: form.minutes("reminderMinutes", false),
    cancelCutoffMinutes: form.minutes("cancelCutoffMinutes"),
    waitlistCapacity: form.integer("waitlistCapacity"),
    waitlistOfferMinutes: form.minutes("waitlistOfferMinutes", false),
    groupLimits: form.groupLimits("groupLimits"),
    admission: values.isQueueOnly ? "QUEUE_ONLY" : "ANY",
    choiceGroup: form.text("choiceGroup"),
  };
}

/** Return how long a weekly meeting takes; one that ends before it begins ends on the next day. @param {{startTime: string, endTime: string}} row */
function minutesOf({ startTime, endTime }) {
  const [start, end] = [startTime, endTime].map((each) => Number(each.slice(0, 2)) * 60 + Number(each.slice(3, 5)));
  return (end - start + DAY_MINUTES) % DAY_MINUTES || DAY_MINUTES;
}

/** @param {Form} form */
function timetable(form) {
  const { first, last, weekly } = form.values;
  if (!first) form.missing("first");
  if (!last) form.missing("last");
  if (weekly.some((/** @type {any} */ row) => !row.startTime || !row.endTime)) form.fail("weekly", t("slotForm.weeklyRow"));
  else if (weekly.some((/** @type {any} */ row) => minutesOf(row) > MAX_MINUTES)) form.fail("weekly", t("slotForm.weeklyLong"));
  return { first, last, weekly, holidays: form.dayList("holidays"), holidayListId: form.values.holidayListId || null, extra: extraMeetings(form) };
}

/** Return the meetings of a course, each by itself, if they were changed. @param {Form} form @param {any} slot */
function changedCourse(form, slot) {
  const extra = extraMeetings(form);
  const isSame = extra.length === slot.meetings.length && extra.every((/** @type {any} */ each, /** @type {number} */ index) => each.startTime === slot.meetings[index].startTime && each.endTime === slot.meetings[index].endTime);
  if (isSame) return {};
  const days = form.values.extra.map((/** @type {any} */ row) => row.startTime.slice(0, 10)).sort();
  if (!days.length) return form.missing("extra") ?? {};
  return { timetable: { first: days[0], last: days[days.length - 1], weekly: [], holidays: [], extra } };
}

/** @param {Form} form */
function extraMeetings(form) {
  const zone = form.values.timeZone;
  return form.values.extra.map((/** @type {any} */ row) => {
    const at = (/** @type {"startTime" | "endTime"} */ part) => {
      const original = row.original?.[part];
      const instant = original && row[part] === toLocal(original, zone) ? original : row[part] && isZone(zone) ? fromLocal(row[part], zone) : null;
      if (!instant) form.fail("extra", t("slotForm.meetingRow"));
      return instant;
    };
    return { startTime: at("startTime"), endTime: at("endTime") };
  });
}
