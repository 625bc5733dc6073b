// @ts-check
/**
 * What a person does with a slot, and what is known of it on this page: a click sends one request
 * with one key, which is asked again until there is an answer, also after a reload.
 */
import { me, newKey, onSession, resultOf, run, sendUntilAnswered } from "./client.js";
import { now } from "./clock.js";
import { redraw } from "./kernel.js";
import { subscribe } from "./socket.js";
import { tellNews } from "./news.js";
import { say } from "./page.js";
import { placeKey, notePlaces, placesFor, shows } from "./people.js";
import { tab } from "./storage.js";
import { commas, errorText, listOf, ordinal, problemTexts, schoolZone, sentences, shortMomentOf, t, timeOf } from "./text.js";

const STORED_REQUESTS = "slotlock.pending";
const POLL_MS = 5000;
/** Under this name, several slots are booked at once. */
export const SEVERAL = "several";
/** How many seconds before its end a hold or an offer is spoken of, the last time first. */
const SPOKEN_HOLD_S = [30, 120];
const SPOKEN_OFFER_S = [120];

/**
 * What is being decided, or was refused, by slot; for another person alone, by slot and person.
 * @typedef {{position: number | null, isLost: boolean, ticketId?: string}} Deciding
 * @typedef {{refusal: any, at: number}} Refused
 * @typedef {import("./people.js").Person} Person
 * @typedef {{slotId: string, title: string, person: Person, timeZone?: string, meetings?: any[]}} Claim
 * of a place; one of several courses has its first meetings
 */
/** @type {Map<string, Deciding>} */
export const deciding = new Map();
/** @type {Map<string, Refused>} */
export const refused = new Map();
/** Called with a slot's id, its new booking or waiting list entry, and the id of another person who has it. @type {Set<Listener>} */
const changeListeners = new Set();

/** @typedef {(slotId: string, change: any, userId?: string) => void} Listener */
/** @param {Listener} listener @returns {() => void} */
export function onChange(listener) {
  changeListeners.add(listener);
  return () => changeListeners.delete(listener);
}

/** The states of bookings that this page brought about: their events are for other tabs and devices. */
export const known = new Set();

/** @param {any} booking */
export function bookingState({ id, status, heldUntil }) {
  return [id, status, heldUntil ?? ""].join();
}

/** @param {string} at @param {any} change @param {any} [booking] of the result */
function changed(at, change, booking) {
  if (booking) known.add(bookingState(booking));
  const [slotId, userId] = at.split(" ");
  for (const listener of changeListeners) listener(slotId, change, userId);
  redraw();
}

/** Return under which name something is decided for another person. @param {string} slotId @param {string} userId */
export function placeOf(slotId, userId) {
  return `${slotId} ${userId}`;
}

/** Requests without an answer, of the person who sent them. @returns {Record<string, any>} */
function pending() {
  return tab.read(STORED_REQUESTS, ({ user, requests }) => user === me?.id && Object.values(requests).every((each) => each.key) && requests) ?? {};
}

/** @param {string} at @param {any} request or null once it has an answer */
function remember(at, request) {
  const { [at]: _, ...others } = pending();
  const requests = request ? { ...others, [at]: request } : others;
  // Without storage, a reload forgets the key: then the server says that it is booked already.
  tab.set(STORED_REQUESTS, JSON.stringify({ user: me?.id, requests }));
}

/** Ask again what had no answer before a reload, or forget what somebody else asked. */
function resume() {
  if (!me) {
    deciding.clear();
    return refused.clear();
  }
  for (const [at, request] of Object.entries(pending())) {
    if (!deciding.has(at)) decide(at, request);
  }
}
onSession(resume);
resume(); // the session may be older than this module

/** Book a place, in the order of asking if the slot has a queue. @param {any} slot */
export function book(slot) {
  const request = { name: slot.admission === "QUEUE_ONLY" ? "requestBooking" : "bookSlot", key: newKey(), title: slot.title };
  return decide(slot.id, request);
}

/**
 * Book places for several people, all of them or none; in a queue, each person has a ticket.
 * @param {any} slot @param {Person[]} people
 */
export function bookFor(slot, people) {
  const { id, title } = slot;
  const claims = people.map((person) => ({ slotId: id, title, person }));
  return slot.admission === "QUEUE_ONLY" ? queueFor(claims) : bookAll(id, claims);
}

/** Send a ticket for each person. @param {Claim[]} claims */
function queueFor(claims) {
  for (const claim of claims) {
    const { slotId, title, person } = claim;
    const isOwn = person.id === me?.id;
    decide(isOwn ? slotId : placeOf(slotId, person.id), { name: "requestBooking", key: newKey(), title, claims: isOwn ? undefined : [claim] });
  }
}

/** Book or reserve several places, all of them or none. @param {string} at the slot, or SEVERAL @param {Claim[]} claims @param {boolean} [hold] */
export function bookAll(at, claims, hold) {
  return decide(at, { name: "bookSlots", key: newKey(), title: listOf([...new Set(claims.map((each) => each.title))]), claims, hold });
}

/**
 * Book the dates of a series: all or none, or those that are free.
 * @param {string} seriesId @param {string} title @param {string} mode @param {Person} [person] a child for whom it is
 */
export function bookDates(seriesId, title, mode, person) {
  const claims = person && [{ slotId: seriesId, title, person }];
  return decide(placeKey({ id: seriesId, person }), { name: "bookSeries", key: newKey(), title, claims, mode });
}

/**
 * @typedef {{name: string, key: string, title: string, claims?: Claim[], hold?: boolean, mode?: string}} Request
 * @param {string} at @param {Request} request
 */
async function decide(at, request) {
  const { name, key, title, claims, hold, mode } = request;
  const [slotId] = at.split(" ");
  const patient = { idempotencyKey: key, ...(name !== "requestBooking" && { waitMs: 5000 }) };
  const userId = claims?.[0].person.id;
  const input = mode ? { ...patient, seriesId: slotId, mode, userId }
    : name === "bookSlots" ? { ...patient, hold, claims: claims?.map((each) => ({ slotId: each.slotId, userId: each.person.id })) }
      : { ...patient, slotId, userId };
  const result = await sendForSlot(at, async (state) => {
    remember(at, request);
    const answer = (await run(name, { input }))[name];
    state.isLost = false;
    return answer.__typename === "Ticket" ? followTicket(at, answer, state) : answer;
  });
  if (!result) return;
  if (result.code === "QUEUE_ONLY" && name === "bookSlot") return decide(at, { ...request, name: "requestBooking" });
  remember(at, null);
  // The slot has a queue since it was read. Places in several slots stay all or none.
  const isQueue = result.refusals?.some((/** @type {any} */ each) => each.refusal.code === "QUEUE_ONLY");
  if (isQueue && claims?.[0].slotId === at) return queueFor(claims);
  if (claims || mode) return decided(at, request, result);
  if (!result.booking) return refuse(at, title, result);
  changed(at, { myBooking: result.booking }, result.booking);
  say(t(result.booking.status === "HELD" ? "said.held" : "said.confirmBooking", { title }), at);
}

/** Show what came of a request for several places, or for another person. @param {string} at @param {Request} request @param {any} result */
function decided(at, { title, claims = [], hold, mode }, result) {
  const bookings = result.bookings ?? (result.booking && [result.booking]);
  // Some dates of a series may be booked, and others not.
  if (result.refusals?.length !== 0 && (mode || !bookings)) refused.set(at, { refusal: { ...result, claims }, at: Date.now() });
  if (!bookings) {
    changed(at, {});
    return say(title + t("whose", { name: reason({ ...result, claims }) }), at);
  }
  for (const [index, booking] of bookings.entries()) {
    const { slotId, person } = mode ? { slotId: booking.slot.id, person: claims.length ? claims[0].person : me } : claims[index];
    const isOwn = person.id === me?.id;
    changed(isOwn ? slotId : placeOf(slotId, person.id), { myBooking: booking }, booking);
    if (!isOwn) notePlaces(slotId, [...placesFor(slotId).filter((each) => each.person.id !== person.id), { id: booking.id, person }]);
  }
  changed(at, {});
  const names = [...new Set(claims.map(({ person }) => person.name))];
  const isOwn = claims.every(({ person }) => person.id === me?.id);
  if (!claims.length) say(t("series.booked", { count: bookings.length }), at);
  else if (isOwn) say(t(hold ? "said.held" : "said.confirmBooking", { title }), at);
  else say(t("whom.booked", { title, names: listOf(names) }), at);
}

/**
 * Send a request for a slot until there is an answer, and show meanwhile that it is decided.
 * @param {string} slotId or what stands for a slot and a person @param {(state: Deciding) => Promise<any>} send
 * @returns {Promise<any>} the result, or null if another one is decided or it is not wanted any more
 */
async function sendForSlot(slotId, send) {
  if (deciding.has(slotId)) return null;
  /** @type {Deciding} */
  const state = { position: null, isLost: false };
  deciding.set(slotId, state);
  refused.delete(slotId);
  redraw();
  const isWanted = () => deciding.get(slotId) === state;
  const result = await sendUntilAnswered(() => send(state), {
    isWanted,
    onTrouble: (code) => {
      state.isLost = code === "OFFLINE";
      redraw();
    },
  });
  if (!isWanted()) return null;
  deciding.delete(slotId);
  return result;
}

/** @param {string} slotId @param {string} title @param {any} refusal */
function refuse(slotId, title, refusal) {
  refused.set(slotId, { refusal, at: Date.now() });
  changed(slotId, {});
  say(title + t("whose", { name: reason(refusal) }), slotId);
}

/**
 * Wait for the outcome of a ticket, or until it is not wanted any more.
 * @param {string} slotId @param {any} ticket @param {Deciding} state @returns {Promise<any>}
 */
function followTicket(slotId, ticket, state) {
  state.ticketId = ticket.id;
  return new Promise((resolve) => {
    /** @param {any} latest */
    const note = (latest) => {
      state.position = latest?.position ?? null;
      redraw();
      if (deciding.get(slotId) === state && (!latest || latest.status === "QUEUED")) return;
      clearInterval(timer);
      end();
      resolve(latest?.outcome ?? { code: latest?.status === "LOST" ? "QUEUE_FULL" : "CANCELLED" });
    };
    // The socket may be refused: ask as well.
    const timer = setInterval(() => run("ticket", { id: ticket.id }).then((data) => note(data.ticket), () => null), POLL_MS);
    const end = subscribe("watchTicket", { id: ticket.id }, (data) => note(data.ticket));
    note(ticket);
  });
}

/** Leave the booking queue: the ticket then says so. @param {string} at a slot, also with another person */
export function leaveQueue(at) {
  const id = deciding.get(at)?.ticketId;
  if (id) run("cancelTicket", { id }).catch(() => null);
}

/** Return why something did not work, as a sentence. @param {any} result @returns {string} */
export function reason(result) {
  const { code, message, fields, limit, refusals, claims } = result;
  if (refusals && claims?.length) {
    const count = claims.length - refusals.length; // so many would have got a place
    const [{ slotId }] = claims;
    const isFew = count > 0 && claims.every((/** @type {any} */ each) => each.slotId === slotId)
      && refusals.every((/** @type {any} */ each) => each.refusal.code === "SLOT_FULL");
    return sentences([t("whom.none"), ...isFew ? [t("whom.tooMany", { count, chosen: claims.length })] : refusals.map(
      (/** @type {any} */ each) => theirReason(claims[each.claim] ?? claims[0], each.refusal, claims, refusals),
    )]);
  }
  if (claims?.length === 1) return theirReason(claims[0], { ...result, claims: null }, claims);
  if (fields?.length) return problemTexts(fields);
  const until = result.until && shortMomentOf(result.until, schoolZone);
  return t(`refusal.${code}`, { ...result, until, count: limit }, message ? t("refusal.other", { message, code }) : errorText(code));
}

/**
 * Return why a claim got no place, with the name of its person, and of its course if there are several.
 * @param {Claim} claim @param {any} refusal @param {Claim[]} all @param {any[]} [refusals] of them
 */
function theirReason({ slotId, title, person }, refusal, all, refusals) {
  const why = reason(refusal);
  const isOwn = person.id === me?.id;
  const isAlone = isOwn && all.every((each) => each.person.id === person.id);
  const name = commas([all.some((each) => each.slotId !== slotId) ? title : "", isAlone ? "" : person.name].filter(Boolean));
  const said = isOwn && refusal.code !== "SLOT_FULL" ? why : t(`their.${refusal.code}`, { ...refusal, count: refusal.limit }, why);
  return name ? t("whom.why", { name, why: shows.inWay?.(refusal, person, all, refusals) || said }) : said;
}

/**
 * Run a change of one's own booking or waiting list entry, or of that of a child.
 * @param {any} slot @param {string} name @param {Record<string, any>} variables @param {(result: any) => any} toChange of the slot
 */
async function change(slot, name, variables, toChange) {
  const at = placeKey(slot);
  const result = await sendForSlot(at, () => resultOf(name, variables));
  const done = result && toChange(result);
  if (done) {
    changed(at, done, result.booking);
    const values = { title: slot.title, ordinal: ordinal(result.position ?? 0) };
    say(slot.person ? shows.said?.(slot, name, values) ?? "" : t(`said.${name}`, values), at);
  } else if (result) {
    refuse(at, slot.title, { ...result, claims: slot.person && [{ slotId: slot.id, person: slot.person }] });
  }
}

/** The deadlines that were said, by booking and time. */
const spoken = new Set();

/** Say that a place is not reserved for long any more. @param {any[] | null | undefined} slots */
export function sayDeadlines(slots) {
  for (const { id, title, myBooking } of slots ?? []) {
    if (myBooking?.status !== "HELD") continue;
    const leftS = Math.round((Date.parse(myBooking.heldUntil) - now()) / 1000);
    const due = (myBooking.waitedSince ? SPOKEN_OFFER_S : SPOKEN_HOLD_S).find((each) => leftS <= each);
    const key = `${myBooking.id} ${myBooking.heldUntil} ${due}`;
    if (leftS <= 0 || !due || spoken.has(key)) continue;
    spoken.add(key);
    say(leftS > 60 ? t("said.minutesLeft", { title, count: Math.round(leftS / 60) }) : t("said.secondsLeft", { title, count: leftS }), id);
  }
}

/** @param {any} slot @param {string} name */
function changeBooking(slot, name) {
  const variables = { id: slot.myBooking.id, key: newKey() };
  return change(slot, name, variables, ({ booking }) => booking && { title: slot.title, myBooking: booking.status === "CANCELLED" ? null : booking });
}

/** @param {any} slot */
export function confirm(slot) {
  return changeBooking(slot, "confirmBooking");
}

/** @param {any} slot */
export function extend(slot) {
  return changeBooking(slot, "extendHold");
}

/** Give a place back, or refuse one that was offered. @param {any} slot */
export function cancel(slot) {
  return changeBooking(slot, "cancelBooking");
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
  const toEntry = (/** @type {any} */ { position, entry }) => entry && { myWaitlistEntry: { position, ...entry } };
  return change(slot, "joinWaitlist", { slotId: slot.id, userId: slot.person?.id }, toEntry);
}

/** @param {any} slot */
export function leave(slot) {
  const isLeft = (/** @type {any} */ result) => !result.code || result.code === "NOT_WAITING";
  return change(slot, "leaveWaitlist", { slotId: slot.id, userId: slot.person?.id }, (result) => isLeft(result) && { myWaitlistEntry: null });
}

/**
 * Tell what somebody else did to places, and call back.
 * @param {() => void} load the view again @param {Person} [person] a child whose places these are
 */
export function watchPlaces(load, person) {
  return subscribe("watchMyBookings", { userId: person?.id }, ({ myBookings: event }) => {
    const isNew = event.by?.id !== me?.id;
    if (isNew) tellNews(event, person);
    if (isNew || !known.has(bookingState(event.booking))) load();
  });
}

/**
 * Call back whenever the server changes one's own bookings or positions, or another person signs
 * in, until the returned function is called. What somebody else did is told. The first
 * position may arrive after the list: it is said only if the page shows another one.
 * @param {() => void} load the view again
 * @param {(slotId: string) => any} find returns a slot of the view, with its `myWaitlistEntry`
 * @param {() => void} onPosition the slot has another position
 */
export function watchMine(load, find, onPosition = redraw) {
  /** @type {Array<() => void>} */
  let ends = [];
  let user = me?.id;
  const watch = () => {
    for (const end of ends) end();
    ends = me ? [watchPlaces(load), subscribe("watchMyWaitlistEntries", {}, ({ myWaitlistEntries: { slotId, position } }) => {
      const slot = find(slotId);
      const entry = slot?.myWaitlistEntry;
      if (!entry?.position || !position) return slot && load();
      if (entry.position === position) return;
      entry.position = position;
      say(slot.title + t("whose", { name: t("state.waiting", { ordinal: ordinal(position) }) }), slotId);
      onPosition();
    }), ...shows.watch?.(load) ?? []] : [];
  };
  watch();
  const stopSession = onSession(() => {
    if (me?.id === user) return;
    user = me?.id;
    watch();
    load();
  });
  return () => {
    stopSession();
    for (const end of ends) end();
  };
}
