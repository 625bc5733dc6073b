// @ts-check
/** What only parents load: what each child has in a course, and for which of them to book or to wait. */
import { book, bookFor, cancel, cancelUntil, deciding, join } from "./bookings.js";
import { leave, leaveQueue, onChange, reason, refused, watchPlaces } from "./bookings.js";
import { now } from "./clock.js";
import { me, userId } from "./client.js";
import { h, redraw } from "./kernel.js";
import { keptWeek } from "./offline.js";
import { go } from "./page.js";
import { askOnce, bookingActions, button, checkInCodeFigure, checkbox, icon, notice, places, section, whose } from "./parts.js";
import { children, placeIn, placeKey, readPeople, shows, whom } from "./people.js";
import { footOf } from "./rows.js";
import { chooseFor, decidingState, freePlaces, fullState, heldState, isForMe, openState, opening, shownState, swappedState } from "./slotstate.js";
import { readAll } from "./store.js";
import { commas, listOf, ordinal, shortOf, t, timeOf } from "./text.js";
import { belowSlot, choiceAmong, isFree, teammates } from "./together.js";

// The worker keeps the files that all members need without a network; parents need this one as well.
const { url } = import.meta;
globalThis.caches?.open(`slotlock-board-${url.split("/").at(-2)}`).then((cache) => cache.add(url)).catch(() => null);

/** Nobody is kept from a place for good by these. */
const PASSING = ["SLOT_FULL", "NOT_YET_OPEN", "QUEUE_ONLY"];
/** These say nothing of the person. */
const OF_COURSE = [...PASSING, "NOT_ELIGIBLE", "CLOSED", "DRAW_ONLY", "SLOT_STARTED", "SLOT_CANCELLED"];
/** What a button for several says before they are chosen. */
const FOR_SEVERAL = { book: "action.bookFor", queue: "action.queueFor", join: "whom.joinFor" };

/** Return a slot as each of the family has it: oneself, then the children. @param {any} slot @returns {any[]} */
function everybody(slot) {
  const own = { ...slot, familyPlaces: null };
  const found = children().map((person) => [person, placeIn(slot, person.id)]);
  if (found.some(([, { myWaitlistEntry }]) => myWaitlistEntry)) waitedAt = Date.now();
  return [own, ...found.filter(([, { user }]) => user).map(([person, place]) => ({ ...own, ...place, person }))];
}

/** Whether somebody has a place, or is on the waiting list. @param {any} slot as one of the family has it */
function has({ myBooking: booking, myWaitlistEntry }) {
  return Boolean(myWaitlistEntry) || booking?.status === "CONFIRMED" || isHeld(booking);
}

/** @param {any} booking */
function isHeld(booking) {
  return booking?.status === "HELD" && now() < Date.parse(booking.heldUntil);
}

/** Whether somebody has nothing here yet, and can have it. @param {any} slot as one of the family has it */
function isAble(slot) {
  const refusal = slot.myEligibility?.refusal;
  return !has(slot) && !deciding.has(placeKey(slot)) && (!refusal || PASSING.includes(refusal.code));
}

/** Return this person, of whom only the id is known while no network confirms the session. @returns {any} */
function myself() {
  return me ?? { id: userId() };
}

/** Return what is said of a family, or else what is said to one person. @type {typeof t} */
function text(key, values) {
  return t(`theirs.${key}`, values, t(key, values));
}

/** @param {any} slot as one of the family has it */
function personOf(slot) {
  return slot.person ?? myself();
}

/** Return a text with the name of whom it is about. @param {any} slot as one of the family has it @param {string} text */
function withName({ person }, text) {
  return t("whom.why", { name: person?.name ?? t("whom.me"), why: text });
}

/** Say what one of the family has in a slot. @param {any} slot as they have it */
function textOf(slot) {
  const { myBooking: booking, myWaitlistEntry: entry, timeZone } = slot;
  const sent = slot.person && deciding.get(placeKey(slot));
  if (sent?.isLost) return t("state.noConnection");
  if (sent) return sent.position ? t("whom.queued", { ...slot.person, ordinal: ordinal(sent.position) }) : t("whom.deciding", slot.person);
  if (isHeld(booking)) return withName(slot, t(booking.waitedSince ? "state.offered" : "state.held", { time: timeOf(booking.heldUntil, timeZone) }));
  if (booking?.status === "CONFIRMED") return withName(slot, t("week.booked"));
  return entry ? withName(slot, entry.position ? t("week.waiting", { ordinal: ordinal(entry.position) }) : t("slot.inLine")) : "";
}

/** Say what could not be done for one of the family. @param {any} slot as they have it */
function troubleOf(slot) {
  const failed = refused.get(placeKey(slot))?.refusal;
  return failed && (slot.person || !failed.claims) ? reason(failed) : "";
}

/** Say why a child who has nothing here cannot have a place. @param {any} slot as one of the family has it */
function whyNot({ id, person, myEligibility }) {
  const refusal = myEligibility?.refusal;
  return person && refusal && !OF_COURSE.includes(refusal.code) && reason({ ...refusal, claims: [{ slotId: id, person }] });
}

/** @param {any} slot as a child who cannot have a place has it */
function whyLine(slot) {
  return h("p", null, icon(slot.myEligibility.refusal.code === "TIME_CONFLICT" ? "overlap" : "lock"), whyNot(slot));
}

/** Whether nobody can book: the campaign is not open or draws, or the course has begun. @param {any} slot @param {import("./slotstate.js").Context} context */
function isShut(slot, context) {
  return context.isByLot || context.opensAt > now() || Date.parse(slot.startTime) <= now();
}

/** Return the children who have nothing here and cannot have a place. @param {any[]} all @param {import("./slotstate.js").Context} context */
function barredOf(all, context) {
  return all.filter((each) => !isShut(each, context) && !has(each) && whyNot(each));
}

/**
 * Say which other course of a person is in the way of a claim, also one of the same request, or how many such a request may have.
 * @param {any} refusal @param {import("./people.js").Person} person @param {import("./bookings.js").Claim[]} claims @param {any[]} [refusals] of them
 */
function inWay({ code, limit, otherBooking, otherBookingId, otherMeeting: at }, { id }, claims, refusals) {
  const others = claims.filter((each, index) => each.person.id === id && refusals?.every(({ claim }) => claim !== index));
  if (code === "LIMIT_REACHED") return !otherBookingId && others.length && t("their.fewer", { count: Math.min(limit, others.length) });
  const other = otherBooking?.slot ?? (at && others.find((each) => each.meetings?.some(({ startTime }) => startTime === at.startTime)));
  return other && t("their.clash", { title: other.title, time: shortOf(at.startTime, other.timeZone) });
}

/** @param {any[]} all */
function lines(all) {
  return all.flatMap((each) => {
    const [text, trouble] = [textOf(each), troubleOf(each)];
    const isGood = each.myBooking && text;
    return [
      text && h("p", isGood ? { class: "good" } : null, icon(isGood ? "tick" : "people"), text),
      trouble && h("p", null, icon("warning"), trouble),
    ];
  });
}

/** @param {any} slot @returns {"book" | "queue" | "join"} */
function kindOf({ remaining, admission }) {
  if (remaining <= 0) return "join";
  return admission === "QUEUE_ONLY" ? "queue" : "book";
}

/** Return the state of a slot for a family. @param {any} slot @param {import("./slotstate.js").Context} context @returns {import("./slotstate.js").Shown} */
function family(slot, context) {
  const all = everybody(slot);
  if (slot.status === "CANCELLED" || Date.parse(slot.endTime) < now()) {
    const names = all.filter((each) => each.person && (each.myBooking || each.cancelledForMe)).map(({ person }) => person.name);
    const { state, left } = shownState(all[0], context);
    return { state, left: () => [left(), names.length > 0 && h("p", null, icon("people"), listOf(names))] };
  }
  const shown = stateOf(slot, all, context);
  return { ...shown, left: () => [shown.left(), !context.isPage && lines(all)] };
}

/** @param {any} slot @param {any[]} all @param {import("./slotstate.js").Context} context @returns {import("./slotstate.js").Shown} */
function stateOf(slot, all, context) {
  const sent = deciding.get(slot.id);
  if (sent && !sent.ticketId) return decidingState(slot, sent);
  const held = all.filter((each) => isHeld(each.myBooking));
  const [first] = held;
  if (first && !context.isPage) return deciding.has(placeKey(first)) ? shownState(first, context) : heldState(first, held);
  const able = all.filter(isAble);
  const isClosed = isShut(slot, context) || !able.length;
  const barred = barredOf(all, context);
  const mine = all.filter(has);
  const isSent = all.some((each) => each.person && deciding.has(placeKey(each)));
  if (isClosed && isSent) return decidingState(slot, { position: null, isLost: false });
  if (isClosed && mine.length) return yoursState(slot, mine, barred);
  if (isClosed) return barred.length ? barredState(barred) : shownState(nearest(all), context);
  return ableState(slot, all, able, context);
}

/**
 * Say why a child cannot have a place, and offer to swap for it what is in the way.
 * @param {any} slot as the child has it @returns {import("./slotstate.js").Shown}
 */
function barredOne(slot) {
  const { person, myEligibility: { refusal } } = slot;
  const [own, ...more] = listed.filter((each) => placeIn(each, person.id).myBooking?.status === "CONFIRMED");
  const booking = refusal.otherBooking ?? (refusal.limit === 1 && own && !more.length && { ...placeIn(own, person.id).myBooking, slot: own });
  const shown = swappedState(booking ? "clash" : "closed", slot, () => whyLine(slot), booking && { id: booking.id, title: booking.slot.title });
  const left = () => [shown.moment && h("p", null, icon("people"), person.name), shown.left()];
  return { ...shown, left, moment: [shown.moment, booking?.id].join() };
}

/**
 * Say why each of these children cannot have a place: a row has room for what one of them can swap.
 * @param {any[]} barred @returns {import("./slotstate.js").Shown}
 */
function barredState(barred) {
  const all = barred.map(barredOne);
  const able = all.filter(({ action }) => action);
  const shown = able.length === 1 ? able[0] : { state: "closed" };
  return { ...shown, moment: all.map(({ moment }) => moment).join(), left: () => all.map(({ left }) => left()) };
}

/** Return for whom a slot is most of all: its refusal is that of the family. @param {any[]} all */
function nearest(all) {
  const [own, ...theirs] = all;
  const isFor = (/** @type {any} */ each) => each.myEligibility?.refusal?.code !== "NOT_ELIGIBLE";
  return all.find(isAble) ?? [...theirs, own].find(isFor) ?? theirs[0] ?? own;
}

/** @param {any} slot @param {any[]} mine those who have something there @param {any[]} barred @returns {import("./slotstate.js").Shown} */
function yoursState(slot, mine, barred) {
  const count = mine.filter((each) => each.myBooking).length;
  const label = [icon(count ? "code" : "people"), t(count ? "action.code" : "action.seeLine"), whose(slot.title)];
  const action = () => button("second", label, () => go(`#/slot/${slot.id}`));
  return { state: count ? "yours" : "waiting", left: () => [places(slot.capacity, count, count ? "mine" : "free"), barred.map(whyLine)], action };
}

/**
 * Offer a place, or the waiting list: to one at once, or to several.
 * @param {any} slot @param {any[]} all @param {any[]} able @param {import("./slotstate.js").Context} context
 */
function ableState(slot, all, able, context) {
  const kind = kindOf(slot);
  const isFull = kind === "join";
  const shown = isFull ? fullState(slot, null) : openState(slot, context);
  if (isFull && !shown.action) return shown;
  if (context.several && !isFull) return shown;
  const [one, ...more] = able;
  const isForAll = more.length > 0 || teammates().length > 0;
  const barred = isForAll ? [] : barredOf(all, context).filter((each) => !(context.isPage && barredOne(each).action));
  const look = isFull || context.isAside || context.isOld || barred.length && !one.person ? "second" : "";
  const left = () => [shown.left(), barred.map(whyLine)];
  const label = one.person ? t(`whom.${kind}One`, one.person) : t(kind === "book" ? "whom.bookMe" : `action.${kind}`);
  const action = () => (isForAll
    ? button(look, [t(FOR_SEVERAL[kind]), whose(slot.title)], () => chooseFor(slot), { "aria-expanded": String(whom.openAt === slot.id) })
    : button(look, [label, whose(slot.title)], () => act(slot, able)));
  return { ...shown, left, isForAll, action: isForAll && context.isPage ? undefined : action };
}

/** Book for these, or let them wait. @param {any} slot @param {any[]} chosen the slot as each of them has it */
function act(slot, chosen) {
  if (kindOf(slot) === "join") chosen.forEach(join);
  else if (chosen.length === 1 && !chosen[0].person) book(slot);
  else bookFor(slot, chosen.map(personOf));
}

/** Return what is known of the teammates and a slot, and a choice for whom to book. @param {any} slot @param {any} more */
function below(slot, { isChoosing, isPage }) {
  if (!slot.familyPlaces) return null;
  const all = everybody(slot);
  return belowSlot(slot, isPage, [isPage && all.map(troubleOf).map((text) => text && notice("stop", "warning", text)), isChoosing && choice(slot, all)].flat());
}

/** @param {any} slot @param {any[]} all */
function choice(slot, all) {
  const kind = kindOf(slot);
  const able = all.filter(isAble);
  const mates = kind === "join" ? [] : teammates().filter((each) => isFree(slot, each));
  const fixed = all.filter((each) => !able.includes(each)).map((each) => {
    const text = textOf(each) || whyNot(each);
    return text && checkbox("check", text, { "data-key": `fixed ${personOf(each).id}`, checked: has(each), disabled: true }, () => {});
  });
  return choiceAmong(slot, [...able.map(personOf), ...mates], kind, fixed, (chosen) => {
    const isMate = chosen.some((person) => mates.includes(person));
    if (isMate) bookFor(slot, chosen);
    else act(slot, able.filter((each) => chosen.includes(personOf(each))));
  });
}

/**
 * Return the parts of the page of a slot: one for each of the family who has something there, and what the others can do.
 * @param {any} slot @param {import("./slotstate.js").Context} context @param {() => any} own returns that of this person
 */
function placesOf(slot, context, own) {
  const [mine, ...theirs] = everybody(slot);
  const isMine = has(mine) || deciding.get(slot.id)?.ticketId;
  const having = theirs.filter((each) => has(each) || deciding.has(placeKey(each)));
  const shown = family(slot, context);
  const isNobody = !(isMine || having.length);
  const isAny = theirs.concat(mine).some(isAble);
  const barred = barredOf(theirs, context).filter((each) => !isAny || barredOne(each).action);
  const isOne = isNobody && !isAny && barred.length < 2; // is said in place of a choice
  return [
    isMine && own(),
    having.map((each) => part(each, context)),
    !isOne && barred.map(barredPart),
    (isOne || isAny) && h(
      "section",
      { class: "slots", "aria-labelledby": "place", "data-key": "place", tabindex: -1 },
      h("h2", { id: "place", class: "vh" }, t("whom.forWhom")),
      alone(shown),
    ),
  ].flat();
}

/** @param {import("./slotstate.js").Shown} shown */
function alone(shown) {
  return h("div", { class: "slot alone", "data-state": shown.state }, footOf(shown));
}

/** Say why a child cannot have a place, and offer to swap. @param {any} slot as the child has it */
function barredPart(slot) {
  const { id, name } = slot.person;
  return section(`of-${id}`, name, [h("div", { class: "slots" }, alone(barredOne(slot)))]);
}

/** Return what a child has in a slot, and what can be done. @param {any} slot as the child has it @param {import("./slotstate.js").Context} context */
function part(slot, context) {
  const { myBooking: booking, person } = slot;
  const at = placeKey(slot);
  const sent = deciding.get(at);
  const title = withName(slot, slot.title);
  const cutoff = cancelUntil(slot);
  const isOver = Date.parse(slot.endTime) < now();
  const isBooked = booking?.status === "CONFIRMED";
  const canCancel = isBooked && !isOver && cutoff > now();
  const leaving = { label: [t("slot.leave"), whose(person.name)], question: t("whom.leaveAsk", person), yes: t("slot.leave"), no: t("slot.stay") };
  return section(`of-${person.id}`, textOf(slot), [
    sent?.ticketId && button("plain", [t("slot.leaveQueue"), whose(person.name)], () => leaveQueue(at)),
    !sent && isHeld(booking) && h("div", { class: "slots" }, alone(shownState(slot, context))),
    isBooked && !isOver && booking.checkInQr && checkInCodeFigure(booking, title),
    canCancel && bookingActions({ ...slot, title }, booking.calendarUrl, !isSwapping(person), () => cancel(slot)),
    canCancel && h("p", { class: "small soft" }, t("week.giveBack"), t("whose", { name: t("open.cancelUntil", { time: opening(cutoff, slot.timeZone) }) })),
    !sent && slot.myWaitlistEntry && askOnce(`leave ${at}`, "final fit", leaving, () => leave(slot)),
    canCancel && isSwapping(person) && slot.campaign && swaps(slot, context),
  ], { kind: "sheet stack" });
}

/** Whether the page of a course shows for what a child, or somebody, can swap it. @param {{id?: string}} [person] */
function isSwapping({ id } = {}) {
  const [, , , mode, child] = location.hash.split("/");
  return mode === "swap" && (!id || child === id);
}

/** The courses of the campaign in which somebody swaps, and its id. @type {{id?: string, slots?: any[] | null}} */
let offered = {};
onChange((id, { movedFrom }, userId) => {
  offered = {}; // is read again
  if (userId && movedFrom && isSwapping()) location.replace(`#/slot/${id}`);
});

/** Offer a child to swap a place for what is free. @param {any} slot as the child has it @param {import("./slotstate.js").Context} context */
function swaps({ campaign, title, myBooking: { id }, person }, context) {
  if (offered.id !== campaign.id) {
    offered = { id: campaign.id };
    const latest = offered;
    read("slotsOfCampaign", { campaign: campaign.id }, "slots").then((slots) => (latest.slots = slots), () => null).then(redraw);
  }
  const row = (/** @type {any} */ each) => {
    const shown = shownState(each, { ...context, swapFrom: { id, title } });
    const name = h("p", null, h("a", { href: `#/slot/${each.id}` }, each.title), " · ", opening(each.startTime, each.timeZone));
    const foot = footOf({ ...shown, left: () => [name, shown.left()] });
    return h("li", { class: "slot alone", "data-state": shown.state, "data-key": placeKey(each) }, foot);
  };
  const all = (offered.slots ?? []).map((each) => ({ ...each, ...placeIn(each, person.id), familyPlaces: null, person }));
  const rows = all.filter((each) => canSwap(each, id));
  return offered.slots && [
    h("h3", null, t("slot.swapTo")),
    all.map(troubleOf).map((text) => text && notice("stop", "warning", text)),
    rows.length ? h("ol", { class: "slots" }, rows.map(row)) : h("p", { class: "soft" }, t("slot.noSwap")),
  ];
}

/** Whether nothing but a booking keeps a child from a course that is free. @param {any} slot as the child has it @param {string} bookingId */
function canSwap(slot, bookingId) {
  const { code, otherBooking } = slot.myEligibility?.refusal ?? {};
  return !has(slot) && freePlaces(slot) > 0 && (!code || code === "LIMIT_REACHED" || otherBooking?.id === bookingId);
}

/** Whether somebody can have a place that is chosen in a list. @param {any} slot @param {import("./people.js").Person} person */
function fits(slot, person) {
  const found = slot.familyPlaces && everybody(slot).find((each) => personOf(each).id === person.id);
  return found ? isAble(found) : true;
}

/** Return what was done for a child. @param {any} slot @param {string} name of the operation @param {any} values */
function said(slot, name, values) {
  const text = t(`theirs.${name}`, values);
  return slot.isNamed ? text : withName(slot, text);
}

/** A socket carries ten operations, and two views at once while one follows the other: further children are read again. */
const MOST_WATCHED = 4;
/** So often a list is read again in which a child waits, and some more so that not all come at once. */
const POLL_MS = 20_000;
/** What the views do if something of a child changes. @type {Set<() => void>} */
const loads = new Set();
/** @type {Array<() => void>} */
let ends = [];
/** The ids of the children who are watched. */
let watched = "";
/** When a child who waits was drawn last. */
let waitedAt = 0;

/** Follow what the children have, until the returned function is called; what somebody else did is told. @param {() => void} load */
function watch(load) {
  loads.add(load);
  const ids = children().map(({ id }) => id);
  if (watched !== ids.join()) {
    for (const end of ends) end();
    watched = ids.join();
    ends = children().slice(0, MOST_WATCHED).map(watchChild);
  }
  const timer = setInterval(() => {
    if (!document.hidden && (ids.length > MOST_WATCHED || Date.now() - waitedAt < POLL_MS)) load();
  }, POLL_MS * (1 + Math.random()));
  return [() => {
    loads.delete(load);
    clearInterval(timer);
    setTimeout(endWatch, 2000); // the next view goes on
  }];
}

function endWatch() {
  if (loads.size) return;
  for (const end of ends) end();
  ends = [];
  watched = "";
}

/** @param {import("./people.js").Person} person */
function watchChild(person) {
  return watchPlaces(() => loads.forEach((load) => load()), person);
}

/** The lists of slots that parents read with what the children have, and which of them they have. @type {Record<string, any>} */
const OF_FAMILY = { cancelledSlots: { status: "CANCELLED" }, seriesDates: {}, slotsOfCampaign: {} };

/** The slots of the campaign that was read last. @type {any[]} */
let listed = [];

const isParent = () => children().length > 0;
/** Whose places the week shows: the id of a child or of oneself, or "" for all. */
let shownOf = "";

/**
 * Read courses with what the children have in them, or a list of this person with those of the children, whose slots then have their names.
 * @param {string} name @param {any} variables @param {string} field
 */
async function read(name, variables, field) {
  if (!me || !isParent()) return readAll(name, variables, field);
  if (Object.hasOwn(OF_FAMILY, name)) {
    const { id: series, ...others } = variables;
    const slots = await readAll("slotsOfFamily", { ...others, series, ...OF_FAMILY[name] }, field);
    if (name === "slotsOfCampaign" && slots && !variables.from) listed = slots;
    return slots && slots.map((slot) => Object.assign(slot, placeIn(slot, me?.id), {
      cancelledForMe: slot.familyPlaces.some((/** @type {any} */ each) => each.cancelledForMe),
    }));
  }
  const lists = await Promise.all([undefined, ...children()].map(async (person) => {
    const all = await readAll(name, { ...variables, userId: person?.id }, field).catch((error) => {
      if (!person || error.code !== "FORBIDDEN") throw error;
      readPeople(); // this is the child of somebody else now
      return null;
    });
    const toNamed = (/** @type {any} */ slot) => ({ ...slot, person, isNamed: true, plain: slot.title, title: withName({ person }, slot.title) });
    return (all ?? []).map((each) => (person ? { ...each, slot: toNamed(each.slot) } : each));
  }));
  return lists.flat();
}

/** Return what the week shows of all places, and of its days. @param {any} week */
function ofWeek(week) {
  const isShown = (/** @type {any} */ { slot }) => !shownOf || personOf(slot).id === shownOf;
  const [bookings, entries] = [week.bookings.filter(isShown), week.entries.filter(isShown)];
  return { ...week, bookings, entries, days: { bookings: shared(bookings), entries: shared(entries) } };
}

/** Return bookings or entries, those of several in a course as one: a day has no room for each. @param {any[]} all */
function shared(all) {
  /** @type {Map<string, any[]>} */
  const found = new Map();
  for (const each of all) {
    const key = [each.slot.id, each.status, each.heldUntil].join();
    found.set(key, [...found.get(key) ?? [], each]);
  }
  return [...found.values()].map((some) => {
    const [{ slot }] = some;
    const name = commas(some.map((each) => each.slot.person?.name ?? t("whom.me")));
    const title = t("whom.why", { name, why: slot.plain ?? slot.title });
    const said = some.map((each) => textOf({ ...each.slot, myWaitlistEntry: each })).join(" · ");
    return some.length > 1 ? { ...some[0], slot: { ...slot, title }, said } : some[0];
  });
}

/** Return what is kept of a course for the door without a network, with what each of the family has there. @param {string} slotId */
function kept(slotId) {
  const all = keptWeek()?.bookings.filter((/** @type {any} */ { slot }) => slot.id === slotId) ?? [];
  const [own, theirs] = [false, true].map((isChild) => all.filter((/** @type {any} */ { slot }) => Boolean(slot.person) === isChild));
  const familyPlaces = theirs.map((/** @type {any} */ myBooking) => ({ user: myBooking.slot.person, myBooking }));
  const slot = all[0]?.slot;
  // Without a network, nobody else can have a place.
  const others = { myBooking: own[0], familyPlaces, myEligibility: { refusal: { code: "CLOSED" } } };
  return slot && { ...slot, ...others, title: slot.plain ?? slot.title, person: null, isNamed: false };
}

/** Let parents choose whose places the week shows. */
function chips() {
  const people = [{ id: "", name: t("week.all") }, ...children(), { ...myself(), name: t("whom.me") }];
  return isParent() && chipsOf(people, shownOf, (id) => (shownOf = id));
}

/** Let parents choose one of the family. @param {any[]} people @param {string} chosen id @param {(id: string) => void} choose */
function chipsOf(people, chosen, choose) {
  return h("fieldset", { class: "chips span" }, h("legend", { class: "vh" }, t("whom.forWhom")), people.map(
    ({ id, name }) => checkbox("chip", name, { type: "radio", name: "of", checked: chosen === id }, () => choose(id)),
  ));
}

/** What shows the dates of a series to one person. */
const datesOfOne = shows.dates;
/** For whom the dates of a series are booked. */
let datesFor = "";

/** Offer all dates of a series, to one of the family at a time. @param {any} slot */
function datesOfFamily(slot) {
  if (!slot.familyPlaces) return datesOfOne?.(slot);
  const able = everybody(slot).filter(({ myEligibility }) => myEligibility?.refusal?.code !== "NOT_ELIGIBLE");
  const shown = able.find((each) => personOf(each).id === datesFor) ?? able.find(({ person }) => person) ?? able[0];
  const people = able.map(({ person }) => person ?? { ...myself(), name: t("whom.me") });
  return shown && datesOfOne?.(shown, chipsOf(people, personOf(shown).id, (id) => (datesFor = id)));
}

/**
 * Let parents choose whose wishes a page has: each child has wishes of its own, or all get places together or none.
 * @param {string} campaignId @param {string[]} userIds of the address @returns {import("./people.js").Wishers | null}
 */
function wishers(campaignId, userIds) {
  if (!isParent()) return null;
  /** @type {any} */
  let campaign = null;
  /** Whether a list can still begin: later, only those who have one together are shown together. */
  let isOpen = false;
  const isFor = (/** @type {any} */ person, /** @type {any} */ slot = null) => isForMe(campaign, slot, [person]);
  const peopleOf = (/** @type {string[]} */ some) => [...children(), myself()].filter((each) => some.includes(each.id));
  const idsOf = (/** @type {string[]} */ some) => peopleOf(some).map(({ id }) => id);
  const namesOf = (/** @type {string[]} */ some) => listOf(peopleOf(some).map((each) => each.name));
  /** The ids of those whose wishes these are. */
  const ids = userIds.length ? userIds : [children()[0].id];
  const isMe = ids.join() === me?.id;
  const name = namesOf(ids);
  const areSame = (/** @type {string[]} */ some) => idsOf(some).join() === idsOf(ids).join();

  /** Return for whom wishes can be, without those whom the draw is not for. @returns {string[][]} */
  function choices() {
    const fitting = children().filter((each) => isFor(each));
    const each = (fitting.length || isFor(me) ? fitting : children()).map(({ id }) => [id]);
    const all = [...each, ...(each.length > 1 && isOpen ? [each.flat()] : []), ...(isFor(me) ? [[me?.id ?? ""]] : [])];
    return all.some(areSame) ? all : [...all, ids];
  }

  /** @param {string[]} some */
  const addressOf = (some) => ["#/wishes", campaignId, ...some].join("/");

  /** @param {any} found */
  function settle(found) {
    const isFirst = !campaign;
    if (!found.campaign) return;
    ({ campaign } = found);
    isOpen = found.draws[0]?.state === "COLLECTING";
    const together = idsOf(found.myWishes?.userIds ?? []);
    const isNobody = ids.length > 1 && !isOpen && !areSame(together);
    const wanted = together.length > 1 ? together : isNobody ? [ids[0]] : choices()[0];
    if (isNobody || (isFirst && !userIds.length && !areSame(wanted))) location.replace(addressOf(wanted));
  }

  /** @param {string[]} some */
  function label(some) {
    if (some.length > 1) return t(some.length === 2 ? "theirs.wishes.both" : "theirs.wishes.all", { count: some.length });
    return some[0] === me?.id ? t("whom.me") : namesOf(some);
  }

  function links() {
    const all = campaign ? choices() : [];
    return all.length > 1 && h("nav", { class: "row", "aria-label": t("whom.forWhom") }, all.map((some) => h(
      "a",
      { class: areSame(some) ? "btn" : "btn second", href: addressOf(some), "aria-current": areSame(some) && "page" },
      label(some),
    )));
  }

  /** @type {typeof t} */
  const text = (key, values, missing) => (isMe ? t(key, values, missing) : t(`theirs.${key}`, { ...values, name }, t(key, values, missing)));

  /**
   * Say what a change of this list does to those that there are.
   * @param {any} saved @param {string[]} ranked @param {(ranked: string[], said: string) => void} change
   */
  function note(saved, ranked, change) {
    const of = saved?.userIds ?? [];
    if (isMe || (ids.length === 1 && of.length < 2)) return null;
    if (areSame(of)) return notice("", "people", text("wishes.ofTeam"));
    const said = t(ids.length > 1 ? "theirs.wishes.join" : "theirs.wishes.split", { name, names: namesOf(of) });
    return notice("wait", "people", said, ranked.length > 0 && button("second", t("theirs.wishes.use", { name }), () => change(ranked, "")));
  }

  const fits = (/** @type {any} */ slot) => peopleOf(ids).every((each) => isFor(each, slot));
  return { userId: ids[0], users: isMe ? null : ids, text, fits, settle, links, note };
}

/** Return the part of the account about the children. @param {(id: string, ...content: any[]) => any} part */
function account(part) {
  const row = (/** @type {any} */ { id, name, groups }) => h("li", { "data-key": id }, h("strong", null, name), groups?.length && ` · ${commas(groups)}`);
  return isParent() && part("children", h("ul", { class: "items" }, children().map(row)), h("p", { class: "soft" }, t("account.childrenHelp")));
}

Object.assign(shows, {
  ...{ account, below, chips, dates: datesOfFamily, family, fits, inWay, kept, ofWeek, read, places: placesOf, said, text, watch },
  wishes: wishers,
  slot: () => (me && isParent() ? "slotOfFamily" : "slot"),
});
