// @ts-check
/** The texts of a language, and dates, times and counts as that language writes them. */
import { now } from "./clock.js";
import { site } from "./page.js";
import { local } from "./storage.js";

export const LANGUAGES = { en: "English", de: "Deutsch", zh: "中文" };
const STORED_LANGUAGE = "slotlock.language";

/** @type {Record<string, any>} */
let messages = {};
let loaded = "";
/** Whether the texts of views that load later are wanted, and those of the views for organizers. */
let hasLater = false;
let isOrganizing = false;
/** The language of the page, one of LANGUAGES. */
export let language = "en";

/** Return the language that was chosen here or for the account, or the first of the browser's that exists. @param {string | null} [locale] of the account */
function preferred(locale) {
  const wanted = [local.get(STORED_LANGUAGE), locale, ...navigator.languages].map((each) => (each ?? "").slice(0, 2));
  return wanted.find((each) => each in LANGUAGES) ?? "en";
}

/** Use a language in this browser from now on. @param {string} chosen */
export async function chooseLanguage(chosen) {
  local.set(STORED_LANGUAGE, chosen);
  await loadTexts();
}

/** Load the texts of the preferred language, unless they are there. @param {string | null} [locale] of the account */
export async function loadTexts(locale) {
  const wanted = preferred(locale);
  if (wanted === loaded) return;
  language = loaded = wanted;
  await read();
}

/** @type {Promise<void> | null} */
let loadingLater = null;
/** Load the texts of the views that load later, too; again only if that failed. */
export function loadLaterTexts() {
  hasLater = true;
  return (loadingLater ??= read().catch((error) => {
    hasLater = false;
    loadingLater = null;
    throw error;
  }));
}

/** Load the texts of the views for organizers, too. */
export async function loadTextsOfOrganizers() {
  hasLater = isOrganizing = true;
  await read();
}

/**
 * Says in which periods of a school day meetings are, as "Tue, period 3": periods.js does, which a school loads that has some.
 * @type {{of: (meetings: Array<{startTime: string, endTime: string}>, zone: string) => string, load: () => any}}
 */
export const periods = { of: () => "", load: () => null };

async function read() {
  const [wanted, later, all] = [language, hasLater, isOrganizing];
  const found = await Promise.all([
    import(`./messages/${wanted}.js`),
    later && import(`./messages/later/${wanted}.js`),
    all && import(`./views/organizer/messages/${wanted}.js`),
    wanted === "de" && site.formOfAddress === "FORMAL" && import(`./messages/${wanted}-formal.js`),
  ]);
  if (wanted !== language || later !== hasLater || all !== isOrganizing) return read();
  messages = Object.assign({}, ...found.map((each) => each && each.messages));
  document.documentElement.lang = wanted;
}

/** A blank between a variable, within two NULs, and its neighbor, if Chinese stands on both sides. */
const BLANK = /([\u2018-\u201d\u3000-\u9fff\uff00-\uffef])(?:\0 \0?| \0)(?=[\u2018-\u201d\u3000-\u9fff\uff00-\uffef])/g;

/**
 * Return a text with its variables. A text with plural forms is an object by CLDR category, or by a
 * number that has a form of its own; the variable `count` chooses the form. Each text may name the site.
 * @param {string} key
 * @param {Record<string, any>} [variables]
 * @param {string} [missing] instead of a text that does not exist
 * @returns {string}
 */
export function t(key, variables = {}, missing = key) {
  let text = messages[key];
  if (text === undefined) return missing;
  if (typeof text === "object") {
    const form = plurals("cardinal").select(variables.count);
    text = text[variables.count] ?? text[form] ?? text.other;
  }
  const values = /** @type {Record<string, any>} */ ({ site: site.name, ...variables });
  return text
    .replace(/\{(\w+)\}/g, (/** @type {string} */ _, /** @type {string} */ name) => `\0${values[name] ?? ""}\0`)
    .replace(BLANK, "$1")
    .replaceAll("\0", "");
}

/** Return what an error of a request means. @param {string} code @param {Record<string, any>} [variables] */
export function errorText(code, variables) {
  return t(`error.${code}`, variables, t("error.other", { code }));
}

/**
 * Return what is wrong with a field, in the language of the page.
 * @param {{code: string, message: string, values: Array<{name: string, value: string}>}} problem as the API says it
 */
export function problemText({ code, message, values }) {
  if (!hasText(`problem.${code}`)) return message;
  const named = Object.fromEntries(values.map(({ name, value }) => [name, value.replace(LOCAL_TIME, readable)]));
  return [named.about, t(`problem.${code}`, named)].filter(Boolean).join(": ");
}

/** Return what is wrong with fields. @param {any[]} problems */
export function problemTexts(problems) {
  return sentences(problems.map(problemText));
}

/** A time in the text of a problem, as 2031-05-05 15:00:00 Europe/Berlin. */
const LOCAL_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d):\d\d .+/;

/** @param {string} _ @param {string} day @param {string} time */
function readable(_, day, time) {
  return moment(dayOf(day, "UTC"), time);
}

/** Return sentences, one after the other. @param {any[]} texts of which some may be empty */
export function sentences(texts) {
  return texts.filter(Boolean).join(t("blank"));
}

/** Return a text as a sentence. @param {string} text which may be one */
export function asSentence(text) {
  return /[.!?。！？]$/.test(text) ? text : t("slot.sentence", { text });
}

/** Return names with commas between them, as A, B, C. @param {string[]} names */
export function commas(names) {
  return names.join(t("comma"));
}

/** Whether there is a text. @param {string} key */
export function hasText(key) {
  return key in messages;
}

/** A formatter takes longer to make than a row of a list. @type {Map<string, any>} */
const formats = new Map();

/** @template T @param {string} key @param {() => T} make @returns {T} */
function once(key, make) {
  if (!formats.has(key)) formats.set(key, make());
  return formats.get(key);
}

/** Return the format of times in a zone. @param {string} zone @param {Intl.DateTimeFormatOptions} options @param {string} [locale] */
export function timeFormat(zone, options, locale = language) {
  return once(JSON.stringify([locale, zone, options]), () => new Intl.DateTimeFormat(locale, { ...options, timeZone: zone }));
}

/** @param {Intl.PluralRuleType} type */
function plurals(type) {
  return once(`${language} ${type}`, () => new Intl.PluralRules(language, { type }));
}

/** Return a time of day, as 15:00. @param {string | Date} at @param {string} zone */
export function timeOf(at, zone) {
  return timeFormat(zone, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(new Date(at));
}

/** Return a day, as Monday, 5 May; with the year if it is another one. @param {string | Date} at @param {string} zone */
export function dayOf(at, zone) {
  const date = new Date(at);
  const isThisYear = date.getFullYear() === new Date(now()).getFullYear();
  return timeFormat(zone, { weekday: "long", day: "numeric", month: "long", ...(isThisYear ? {} : { year: "numeric" }) }).format(date);
}

/** Return a day with a time. @param {string} day @param {string} time */
export function moment(day, time) {
  return t("moment", { day, time });
}

/** Return a short date with its time, as May 5, 15:00. @param {string | Date} at @param {string} zone */
export function shortMomentOf(at, zone) {
  return moment(shortDayOf(at, zone), timeOf(at, zone));
}

/** Return a short day with its time, as Mon 5 May, 15:00; with the year if it is another one. @param {string} at @param {string} zone */
export function shortWhenOf(at, zone) {
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now()).getFullYear() ? {} : { year: /** @type {const} */ ("numeric") };
  return moment(timeFormat(zone, { weekday: "short", day: "numeric", month: "short", ...year }).format(date), timeOf(date, zone));
}

/** Return a short day and time, as Mon 15:00. @param {string | Date} at @param {string} zone */
export function shortOf(at, zone) {
  return `${weekdayOf(at, zone)} ${timeOf(at, zone)}`;
}

/** Return the short name of a weekday, as Mon. @param {string | Date} at @param {string} zone */
export function weekdayOf(at, zone) {
  return timeFormat(zone, { weekday: "short" }).format(new Date(at));
}

/** Return the name of a weekday, as Monday. @param {string | Date} at @param {string} zone */
function longWeekdayOf(at, zone) {
  return timeFormat(zone, { weekday: "long" }).format(new Date(at));
}

/**
 * Return when a course meets, as "Every Monday 15:30, 12 meetings · Mon, period 7"; of one meeting the period.
 * @param {any} slot with its first meetings
 */
export function rhythmOf(slot) {
  return [weeklyOf(slot), periods.of(slot.meetings, slot.timeZone)].filter(Boolean).join(" · ");
}

/** @param {{meetingCount: number, meetings: Array<{startTime: string}>, timeZone: string}} slot */
function weeklyOf({ meetingCount: count, meetings, timeZone }) {
  if (!(count > 1)) return "";
  const unique = (/** @type {(at: string, zone: string) => string} */ of) => [...new Set(meetings.map((each) => of(each.startTime, timeZone)))];
  const [time, ...otherTimes] = unique(timeOf);
  const days = listOf(unique(longWeekdayOf));
  // Dates that follow each other day by day, such as a camp, are no rhythm.
  const isWeekly = Date.parse(meetings[meetings.length - 1].startTime) - Date.parse(meetings[0].startTime) > 6 * 86_400_000;
  if (!isWeekly) return t("slot.meetings", { count });
  return otherTimes.length ? t("meets.days", { days, count }) : t("meets.weekly", { days, time, count });
}

/** Return a number of minutes as days, hours, minutes and seconds. @param {number} minutes */
export function durationOf(minutes) {
  const seconds = Math.round(minutes * 60);
  /** @type {Array<[string, number]>} */
  const parts = [["day", seconds / 86_400], ["hour", (seconds / 3600) % 24], ["minute", (seconds / 60) % 60], ["second", seconds % 60]];
  const shown = parts.filter(([, value]) => value >= 1).map(([name, value]) => unitFormat(name).format(Math.floor(value)));
  return listOf(shown, language === "zh" ? "unit" : "conjunction") || unitFormat("minute").format(0);
}

/** Return the format of a number of units, as 3 days. @param {string} unit @returns {Intl.NumberFormat} */
export function unitFormat(unit) {
  const style = /** @type {const} */ ("unit");
  return once(`${language} ${unit}`, () => new Intl.NumberFormat(language, { style, unit, unitDisplay: "long" }));
}

/** Return a short day, as 5 May. @param {string | Date} at @param {string} zone */
export function shortDayOf(at, zone) {
  return timeFormat(zone, { day: "numeric", month: "short" }).format(new Date(at));
}

/** Return the time of day in hours, as 13.5. @param {string | Date} at @param {string} zone */
export function hoursOf(at, zone) {
  const [hours, minutes] = timeOf(at, zone).split(":");
  return Number(hours) + Number(minutes) / 60;
}

/** Return a date as 2031-05-05, to group by days. @param {string | Date} at @param {string} zone */
export function dateKey(at, zone) {
  return timeFormat(zone, { year: "numeric", month: "2-digit", day: "2-digit" }, "en-CA").format(new Date(at));
}

/** Return a number as the language writes it. @param {number} value */
export function number(value) {
  return once(`${language} number`, () => new Intl.NumberFormat(language)).format(value);
}

/** Compare names as the language orders them: Küche before Kunstraum, 5a before 10a. @param {string} a @param {string} b */
export function compareNames(a, b) {
  return once(`${language} names`, () => new Intl.Collator(language, { numeric: true })).compare(a, b);
}

/** Return names as the language lists them: A, B and C. @param {string[]} names @param {Intl.ListFormatType} [type] */
export function listOf(names, type = "conjunction") {
  return new Intl.ListFormat(language, { type }).format(names);
}

/** Return a place in a line, as 4th. @param {number} value */
export function ordinal(value) {
  const form = plurals("ordinal").select(value);
  return t(`ordinal.${form}`, { value: number(value) }, t("ordinal.other", { value: number(value) }));
}

/** The zone of the browser. */
export const deviceZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Whether the site has a zone: of a place on the earth. */
export function hasZone() {
  return site.timeZone !== "UTC";
}

/** The zone of times that are about no course: that of the site, or else of its courses. */
export let schoolZone = deviceZone;

/** Return the zone of the site, or else of a course. @param {any} [slot] */
export function zoneOf(slot) {
  return (hasZone() ? site : slot)?.timeZone ?? schoolZone;
}

/** Use the zone of the site, or else of a course. @param {any} [slot] */
export function learnZone(slot) {
  schoolZone = zoneOf(slot);
}

learnZone();

/** Return the name of a zone, as Central European Time; one without a name stays as it is. @param {string} zone */
export function zoneName(zone) {
  const parts = timeFormat(zone, { timeZoneName: "longGeneric" }).formatToParts(new Date(now()));
  const name = parts.find((part) => part.type === "timeZoneName")?.value;
  return name?.startsWith("GMT") ? zone : name ?? zone;
}

/** Return in which zone times are shown, and how far the clock of the device is from it. @param {string} zone */
export function zoneText(zone) {
  const at = new Date(now());
  const days = dateKey(at, deviceZone).localeCompare(dateKey(at, zone));
  const hours = 24 * days + hoursOf(at, deviceZone) - hoursOf(at, zone);
  const difference = hours && t(hours > 0 ? "zone.ahead" : "zone.behind", { time: durationOf(Math.abs(hours) * 60) });
  return t("zone", { zone: zoneName(zone) }) + (difference || "");
}

/** Return the time until an instant as m:ss or h:mm:ss; never negative. @param {number} ms */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const parts = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, index) => (index ? String(part).padStart(2, "0") : String(part))).join(":");
}
