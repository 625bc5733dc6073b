// @ts-check
/** What the door says of a check-in. */
import { codeOf } from "../../../client.js";
import { reason } from "../../../bookings.js";
import { now } from "../../../clock.js";
import { whereOf } from "../../../rows.js";
import { opening } from "../../../slotstate.js";
import { commas, dayOf, errorText, shortOf, t, timeOf } from "../../../text.js";

/** From so long before the start on, it is the normal case that somebody comes in. */
const IN_TIME_MS = 60 * 60_000;

/** @typedef {{kind: "yours" | "wait" | "stop", title: string, line: string, undo?: false | {name: string, booking: any}}} Verdict */

/**
 * Return the verdict of a check-in. The API records people up to twelve hours before the start, and the door says if one is early.
 * @param {any} result
 * @param {string} startTime of the meeting
 * @param {string} zone of the slot
 * @param {string} count of those who are here
 * @returns {Verdict}
 */
export function verdictOf(result, startTime, zone, count) {
  const { booking, slot } = result;
  const name = booking?.user.name ?? "";
  const undo = { name: "undoCheckIn", booking };
  switch (result.__typename) {
    case "CheckedIn":
      if (Date.parse(startTime) - now() > IN_TIME_MS)
        return { kind: "wait", title: name, line: t("door.soon", { time: opening(Date.parse(startTime), zone) }), undo };
      return { kind: "yours", title: name, line: [commas(booking.user.groups), count].filter(Boolean).join(" · "), undo };
    case "AlreadyCheckedIn":
      return {
        kind: "wait",
        title: t("door.already"),
        line: t("door.since", { name, time: timeOf(result.checkedInAt, zone), by: result.checkedInBy?.name ?? "–" }),
        undo,
      };
    case "WrongSlot":
      return {
        kind: "stop",
        title: t("door.wrong"),
        line: t("door.wrongLine", { name, title: slot.title, where: whereOf(slot) || "–", time: shortOf((slot.meetings[0] ?? slot).startTime, slot.timeZone) }),
      };
    case "CheckInNotOpen":
      return {
        kind: "wait",
        title: t("door.early"),
        line: t("door.earlyLine", { day: dayOf(result.opensAt, slot.timeZone), time: timeOf(result.opensAt, slot.timeZone) }),
      };
    case "NotConfirmed":
      return { kind: "stop", title: t("door.notBooked"), line: t("door.notBookedLine", { name, title: slot.title }) };
    default:
      return { kind: "stop", title: t("door.no"), line: result.code === "BOOKING_NOT_FOUND" ? t("door.unknown") : reason(result) };
  }
}

/** Return the verdict of a request without an answer. @param {unknown} caught @param {any} booking of the last list, if it is there @returns {Verdict} */
export function failed(caught, booking) {
  const code = codeOf(caught);
  const offline = booking ? t("door.offlineOnList", { name: booking.user.name }) : t("door.offlineUnknown");
  return { kind: "wait", title: t("door.notRecorded"), line: code === "OFFLINE" ? offline : errorText(code) };
}
