// @ts-check
/** Durations: minutes in the API, and days, hours or minutes for people. */
import { unitFormat } from "../../../text.js";

/** The units with their minutes, the longest first. */
export const UNITS = /** @type {const} */ ([["day", 1440], ["hour", 60], ["minute", 1]]);

/** Return the name of a unit for a choice, as days. @param {string} unit */
export function unitName(unit) {
  const parts = unitFormat(unit).formatToParts(2);
  return parts.find((part) => part.type === "unit")?.value.trim() ?? unit;
}

/**
 * Return the longest unit in which a duration is a whole number, in minutes.
 * @param {number | null | undefined} minutes @param {number} ofNone the unit of no time at all
 */
export function unitOf(minutes, ofNone) {
  return minutes ? (UNITS.find(([, length]) => minutes % length === 0)?.[1] ?? 1) : ofNone;
}
