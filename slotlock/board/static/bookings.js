// @ts-check
/**
 * What a person does with a slot, and what is known of it on this page: a click sends one request
 * with one key, which is asked again until there is an answer, also after a reload.
 */
import { RequestError, me, newKey, onSession, run, sendUntilAnswered } from "./client.js";
import { now } from "./clock.js";
import { redraw } from "./kernel.js";
import { subscribe } from "./socket.js";
import { say } from "./app.js";
import { tab } from "./storage.js";
import { hasText, ordinal, problemText, t, timeOf } from "./text.js";

const STORED_REQUESTS = "slotlock.pending";
const POLL_MS = 5000;
/** How many seconds before its end a hold or an offer is spoken of, the last time first. */
const SPOKEN_HOLD_S = [30, 120];
const SPOKEN_OFFER_S = [120];

/**
 * What is being decided, or was refused, by slot.
 * @typedef {{since: number, position: number | null, isLost: boolean, ticketId?: string}} Deciding
 * @typedef {{code: string, refusal: any, at: number}} Refused
 */
/** @type {Map<string, Deciding>} */
export const deciding = new Map();
/** @type {Map<string, Refused>} */
export const refused = new Map();
/** Called with a slot's id and its new booking or waiting list entry. @type {Set<(slotId: string, change: any) => void>} */
const changeListeners = new Set();

/** @param {(slotId: string, change: any) => void} listener @returns {() => void} */
export function onChange(listener) {
  changeListeners.add(listener);
  return () => changeListeners.delete(listener);
}

/** The states of bookings that this page brought about: their events are for other tabs and devices. */
const known = new Set();

/** @param {any} booking */
function stateOf({ id, status, heldUntil }) {
  return [id, status, heldUntil ?? ""].join();
}

/** @param {string} slotId @param {any} change @param {any} [booking] of the result */
function changed(slotId, change, booking) {
  if (booking) known.add(stateOf(booking));
  for (const listener of changeListeners) listener(slotId, change);
  redraw();
}

/** Requests without an answer, of the person who sent them. @returns {Record<string, any>} */
function pending() {
  const stored = JSON.parse(tab.get(STORED_REQUESTS) ?? "{}");
  return stored.user === me?.id ? stored.requests : {};
}

/** @param {string} slotId @param {any} request or null once it has an answer */
function remember(slotId, request) {
  const { [slotId]: _, ...others } = pending();
  const requests = request ? { ...others, [slotId]: request } : others;
  // Without storage, a reload forgets the key: then the server says that it is booked already.
  tab.set(STORED_REQUESTS, JSON.stringify({ user: me?.id, requests }));
}

/** Ask again what had no answer before a reload, or forget what somebody else asked. */
function resume() {
  if (!me) return deciding.clear();
  for (const [slotId, request] of Object.entries(pending())) {
    if (!deciding.has(slotId)) decide(slotId, request);
  }
}
onSession(resume);
resume(); // the session may be older than this module

/** Book a place, in the order of asking if the slot has a queue. @param {any} slot */
export function book(slot) {
  const request = { name: slot.admission === "QUEUE_ONLY" ? "requestBooking" : "bookSlot", key: newKey(), title: slot.title };
  return decide(slot.id, request);
}

/** @param {string} slotId @param {{name: string, key: string, title: string}} request */
async function decide(slotId, request) {
  if (deciding.has(slotId)) return;
  /** @type {Deciding} */
  const state = { since: Date.now(), position: null, isLost: false };
  deciding.set(slotId, state);
  refused.delete(slotId);
  remember(slotId, request);
  redraw();
  const input = { slotId, idempotencyKey: request.key, ...(request.name === "bookSlot" && { waitMs: 5000 }) };
  try {
    let result = await sendUntilAnswered(async () => {
      const answer = (await run(request.name, { input }))[request.name];
      state.isLost = false;
      return answer.__typename === "Ticket" ? followTicket(answer, state) : answer;
    }, { isWanted: () => deciding.get(slotId) === state, onTrouble: (code) => {
      state.isLost = code === "OFFLINE";
      redraw();
    } });
    if (result === null) return;
    if (result.code === "QUEUE_ONLY" && request.name === "bookSlot") {
      deciding.delete(slotId);
      return decide(slotId, { ...request, name: "requestBooking" });
    }
    finish(slotId, request.title, result);
  } catch (error) {
    finish(slotId, request.title, { code: error instanceof RequestError ? error.code : "INTERNAL" });
  }
}

/** Wait for the outcome of a ticket. @param {any} ticket @param {Deciding} state @returns {Promise<any>} */
function followTicket(ticket, state) {
  state.ticketId = ticket.id;
  return new Promise((resolve) => {
    /** @param {any} latest */
    const note = (latest) => {
      state.position = latest?.position ?? null;
      redraw();
      if (!latest || latest.status === "QUEUED") return;
      clearInterval(timer);
      end();
      resolve(latest.outcome ?? { code: latest.status === "LOST" ? "QUEUE_FULL" : "CANCELLED" });
    };
    // The socket may be refused: ask as well.
    const timer = setInterval(() => run("ticket", { id: ticket.id }).then((data) => note(data.ticket), () => null), POLL_MS);
    const end = subscribe("watchTicket", { id: ticket.id }, (data) => note(data.ticket));
    note(ticket);
  });
}

/** Leave the booking queue: the ticket then says so. @param {string} slotId */
export function leaveQueue(slotId) {
  const id = deciding.get(slotId)?.ticketId;
  if (id) run("cancelTicket", { id }).catch(() => null);
}

/** @param {string} slotId @param {string} title @param {any} result */
function finish(slotId, title, result) {
  deciding.delete(slotId);
  remember(slotId, null);
  if (result.booking) {
    refused.delete(slotId);
    changed(slotId, { myBooking: result.booking }, result.booking);
    say(t(result.booking.status === "HELD" ? "said.held" : "said.yours", { title }));
  } else {
    refused.set(slotId, { code: result.code, refusal: result, at: Date.now() });
    changed(slotId, {});
    say(`${title}: ${reason(result)}`);
  }
}

/** Return why not, as a sentence. @param {any} refusal */
export function reason(refusal) {
  if (refusal.fields?.length) return refusal.fields.map(problemText).join(" ");
  const key = `refusal.${refusal.code}`;
  if (hasText(key)) return t(key, { ...refusal, count: refusal.limit });
  return refusal.message ? t("refusal.other", { message: refusal.message, code: refusal.code }) : t("error.other", { code: refusal.code });
}

/**
 * Run a change of one's own booking or waiting list entry; returns its result.
 * @param {any} slot @param {string} name @param {Record<string, any>} variables @param {(result: any) => any} toChange of the slot
 */
async function change(slot, name, variables, toChange) {
  if (deciding.has(slot.id)) return;
  const state = { since: Date.now(), position: null, isLost: false };
  deciding.set(slot.id, state);
  refused.delete(slot.id);
  redraw();
  try {
    const result = await sendUntilAnswered(async () => (await run(name, variables))[name], {
      isWanted: () => deciding.get(slot.id) === state,
      onTrouble: (code) => {
        state.isLost = code === "OFFLINE";
        redraw();
      },
    });
    deciding.delete(slot.id);
    const done = result && toChange(result);
    if (done) {
      changed(slot.id, done, result.booking);
      say(t(`said.${name}`, { title: slot.title, ordinal: ordinal(result.position ?? 0) }));
    } else if (result) {
      refused.set(slot.id, { code: result.code, refusal: result, at: Date.now() });
      say(`${slot.title}: ${reason(result)}`);
    }
  } catch (error) {
    deciding.delete(slot.id);
    refused.set(slot.id, { code: /** @type {any} */ (error).code ?? "INTERNAL", refusal: error, at: Date.now() });
  }
  redraw();
}

/** The deadlines that were said, by booking and time. */
const spoken = new Set();

/** Say that a place is not reserved for long any more. @param {any[] | null | undefined} slots */
export function sayDeadlines(slots) {
  for (const { title, myBooking } of slots ?? []) {
    if (myBooking?.status !== "HELD") continue;
    const leftS = Math.round((Date.parse(myBooking.heldUntil) - now()) / 1000);
    const due = (myBooking.waitedSince ? SPOKEN_OFFER_S : SPOKEN_HOLD_S).find((each) => leftS <= each);
    const key = `${myBooking.id} ${myBooking.heldUntil} ${due}`;
    if (leftS <= 0 || !due || spoken.has(key)) continue;
    spoken.add(key);
    say(leftS > 60 ? t("said.minutesLeft", { title, count: Math.round(leftS / 60) }) : t("said.secondsLeft", { title, count: leftS }));
  }
}

/** @param {any} slot */
export function confirm(slot) {
  const variables = { id: slot.myBooking.id, key: newKey() };
  return change(slot, "confirmBooking", variables, (result) => result.booking && { myBooking: result.booking });
}

/** @param {any} slot */
export function extend(slot) {
  const variables = { id: slot.myBooking.id, key: newKey() };
  return change(slot, "extendHold", variables, (result) => result.booking && { myBooking: result.booking });
}

/** Give a place back, or refuse one that was offered. @param {any} slot */
export function cancel(slot) {
  const variables = { id: slot.myBooking.id, key: newKey() };
  return change(slot, "cancelBooking", variables, (result) => result.booking && { myBooking: null });
}

/** Return until when a place can be given back, in ms since 1970. @param {any} slot */
export function cancelUntil(slot) {
  const cutoff = Date.parse(slot.startTime) - (slot.cancelCutoffMinutes ?? 0) * 60_000;
  return Math.min(cutoff, Date.parse(slot.campaign?.cancelUntil ?? "") || cutoff);
}

/** Move a booking to this slot, in one step. @param {any} slot @param {string} bookingId of the other slot */
export function swap(slot, bookingId) {
  const input = { bookingId, slotId: slot.id, idempotencyKey: newKey() };
  return change(slot, "moveBooking", { input }, (result) => result.booking && { myBooking: result.booking, movedFrom: bookingId });
}

/** @param {any} slot */
export function join(slot) {
  return change(slot, "joinWaitlist", { slotId: slot.id }, (result) => result.entry && { myWaitlistEntry: { position: result.position, ...result.entry } });
}

/** @param {any} slot */
export function leave(slot) {
  const isLeft = (/** @type {any} */ result) => !result.code || result.code === "NOT_WAITING";
  return change(slot, "leaveWaitlist", { slotId: slot.id }, (result) => isLeft(result) && { myWaitlistEntry: null });
}

/**
 * Call back whenever the server changes one's own bookings or positions, or another person signs
 * in, until the returned function is called. What is one's own event is said aloud.
 * @param {() => void} onBooking
 * @param {(event: {slotId: string, position: number | null}) => any} onPosition returns the slot
 */
export function watchMine(onBooking, onPosition) {
  /** @type {Array<() => void>} */
  let ends = [];
  let user = me?.id;
  const watch = () => {
    for (const end of ends) end();
    ends = me ? [subscribe("watchMyBookings", {}, ({ myBookings: { booking, action, by } }) => {
      if (action === "OFFERED") say(t("said.offered", { title: booking.slot.title, time: timeOf(booking.heldUntil, booking.slot.timeZone) }));
      if (by?.id !== me?.id || !known.has(stateOf(booking))) onBooking();
    }), subscribe("watchMyWaitlistEntries", {}, ({ myWaitlistEntries: event }) => {
      const slot = onPosition(event);
      if (slot && event.position) say(`${slot.title}: ${t("state.waiting", { ordinal: ordinal(event.position) })}`);
    })] : [];
  };
  watch();
  const stopSession = onSession(() => {
    if (me?.id === user) return;
    user = me?.id;
    watch();
    onBooking();
  });
  return () => {
    stopSession();
    for (const end of ends) end();
  };
}
