// @ts-check
/** What a person needs at the door without a network: the last week that was read, with its codes. */
import { me, onSession, userId } from "./client.js";
import { local, tab } from "./storage.js";

const STORED_WEEK = "slotlock.week";
/** What the names of the lists begin with that the door of a course keeps. */
export const STORED_DOORS = "slotlock.door.";

/**
 * Keep the week of the signed-in person, with what these children have, and no other ones.
 * @param {any} week or null, if there is none @param {Array<{id: string}>} children
 */
export function keepWeek(week, children) {
  if (week?.user !== userId()) return; // somebody else signed in while it was read
  const isOurs = (/** @type {any} */ { slot: { person } }) => !person || children.some(({ id }) => id === person.id);
  local.set(STORED_WEEK, JSON.stringify({ ...week, bookings: week.bookings.filter(isOurs), entries: week.entries.filter(isOurs), children }));
}

/** Return the week that was kept, or null if it is another person's. */
export function keptWeek() {
  return local.read(
    STORED_WEEK,
    (week) => week.user === userId() && week.children.every((/** @type {any} */ each) => each.id)
      && [...week.bookings, ...week.entries].every(({ slot }) => slot.meetings.length) && week,
  );
}

/** Return what is kept of one's own course, with the code. @param {string} slotId */
export function keptSlot(slotId) {
  const week = keptWeek();
  const booking = week?.bookings.find((/** @type {any} */ each) => each.slot.id === slotId);
  return booking ? { ...booking.slot, myBooking: booking } : null;
}

// On a shared device, nothing of a person stays after they signed out.
onSession(() => {
  if (me) return;
  if (!keptWeek()) local.remove(STORED_WEEK);
  tab.removeAll(STORED_DOORS);
});
