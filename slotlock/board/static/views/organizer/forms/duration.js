// @ts-check
/** Durations: minutes in the API, and days, hours or minutes for people. */
import { language } from "../../../text.js";

/** The units with their minutes, the longest first. */
export const UNITS = /** @type {const} */ ([["day", 1440], ["hour", 60], ["minute", 1]]);

/** @param {string} unit */
function formatOf(unit) {
  const style = "unit";
  return new Intl.NumberFormat(language, { style, unit, unitDisplay: "long" });
}

/** Return a duration, as 3 days or 1 hour 30 minutes. @param {number} minutes */
export function durationOf(minutes) {
  const parts = [];
  let left = minutes;
  for (const [unit, length] of UNITS) {
    const count = Math.floor(left / length);
    if (count) parts.push(formatOf(unit).format(count));
    left -= count * length;
  }
  return parts.join(" ") || formatOf("minute").format(0);
}

/** Return the name of a unit for a choice, as days. @param {string} unit */
export function unitName(unit) {
  const parts = formatOf(unit).formatToParts(2);
  return parts.find((part) => part.type === "unit")?.value.trim() ?? unit;
}

/** Return the longest unit in which a duration is a whole number, in minutes. @param {number | null | undefined} minutes @param {number} ofNone the unit of no time at all */
export function unitOf(minutes, ofNone) {
  return minutes ? (UNITS.find(([, length]) => minutes % length === 0)?.[1] ?? 1) : ofNone;
}
