// @ts-check
/** Local times of a zone, as `<input type=datetime-local>` has them, and the instants that they are. */
import { now } from "../../../clock.js";
import { dateKey, dayOf, moment, timeFormat, timeOf } from "../../../text.js";

export const DAY_MS = 86_400_000;

/** Return the local time of an instant, as 2031-05-05T18:00; empty of none. @param {string | number | null | undefined} at @param {string} zone */
export function toLocal(at, zone) {
  if (at == null) return "";
  const date = new Date(at);
  return `${dateKey(date, zone)}T${timeOf(date, zone)}`.padStart("2031-05-05T18:00".length, "0");
}

/**
 * Return the instants of a local time: one, none if the clocks skip it that day, or two if it comes twice.
 * @param {string} local
 * @param {string} zone
 * @returns {number[]} ms since 1970
 */
export function instantsOf(local, zone) {
  const asUtc = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtc)) return [];
  const found = [asUtc - DAY_MS, asUtc + DAY_MS].map((near) => asUtc - (Date.parse(`${toLocal(near, zone)}Z`) - near));
  return [...new Set(found)].filter((at) => toLocal(at, zone) === local).sort((a, b) => a - b);
}

/** Return the first instant of a local time, or null if that day does not have it. @param {string} local @param {string} zone */
export function fromLocal(local, zone) {
  const [first] = instantsOf(local, zone);
  return first === undefined ? null : new Date(first).toISOString();
}

/** Return the local time so many days later, on a clock that does not change. @param {string} local @param {number} days */
export function plusDays(local, days) {
  return new Date(Date.parse(`${local}Z`) + days * DAY_MS).toISOString().slice(0, local.length);
}

/** Whether the browser knows a zone. @param {string} zone */
export function isZone(zone) {
  try {
    return Boolean(timeFormat(zone, {}));
  } catch {
    return false;
  }
}

/** Whether a local time of a form is over. @param {string} local @param {string} zone */
export function isPast(local, zone) {
  const [at] = instantsOf(local, zone);
  return at !== undefined && at < now();
}

/** Return a day with its time, as Monday, 5 May, 15:00. @param {string | number} at @param {string} zone */
export function whenOf(at, zone) {
  const date = new Date(at);
  return moment(dayOf(date, zone), timeOf(date, zone));
}
