// @ts-check
/** What a person needs at the door without a network: the last week that was read, with its codes. */
import { hasSession, me, onSession } from "./client.js";
import { local } from "./storage.js";

const STORED_WEEK = "slotlock.week";

/** Keep the week of the signed-in person. @param {{user: string}} week */
export function keepWeek(week) {
  local.set(STORED_WEEK, JSON.stringify(week));
}

/** Return the week that was kept, or null if it is another person's. */
export function keptWeek() {
  const week = JSON.parse(local.get(STORED_WEEK) ?? "null");
  return week && hasSession() && (!me || me.id === week.user) ? week : null;
}

/** Return what is kept of one's own course, with the code. @param {string} slotId */
export function keptSlot(slotId) {
  const week = keptWeek();
  const booking = week?.bookings.find((/** @type {any} */ each) => each.slot.id === slotId);
  return booking ? { ...booking.slot, myBooking: { ...booking, ...week.codes[booking.id] } } : null;
}

// On a shared device, nothing of a person stays after they signed out.
onSession(() => {
  if (!me && !hasSession()) local.remove(STORED_WEEK);
});
