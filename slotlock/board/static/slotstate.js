// @ts-check
/** Which state a slot is in for this person: what is known, and what to do next. */
import { deciding, refused, book, cancel, confirm, extend, join, reason, swap } from "./bookings.js";
import { now } from "./clock.js";
import { me } from "./client.js";
import { button, checkbox, hidden, icon, places, see, whose } from "./parts.js";
import { h, redraw } from "./kernel.js";
import { go, say, signInFirst } from "./page.js";
import { children, others, placeKey, shows, whom } from "./people.js";
import { local } from "./storage.js";
import { commas, countdown, dateKey, loadLaterTexts, ordinal, shortMomentOf, shortOf, t, timeOf } from "./text.js";

/** How many places are almost none: at most two, or a tenth. */
const ALMOST = 2;
/** A refusal that is shown in the row that was clicked, before the row says what is there. */
const SHOWN_MS = 8000;
/** How many groups a row names. */
const SHOWN_GROUPS = 4;

/**
 * What a row shows. Its elements are only made if the row changes; `moment` is what time alone changes.
 * `isForAll` says that one chooses for whom to book.
 * @typedef {{state: string, moment?: string, left: () => any[], action?: () => any, second?: () => any, isForAll?: boolean}} Shown
 * @typedef {{opensAt: number, isOld: boolean, readAt: number, isAside?: boolean, isForOthers?: boolean, isOfAnyDay?: boolean,
 *   swapFrom?: {id: string, title: string}, own?: any, isByLot?: boolean, isPage?: boolean,
 *   several?: Set<string> | null}} Context
 * of the list: when it opens, how old it is, whether another action is the main one, the campaign is for others or no heading
 * says the day, the booking to move, the only slot that is booked, whether its places are drawn, whether this is
 * the page of the slot, and what is chosen if several are
 */

/** Return the state of a slot for this person. @param {any} slot @param {Context} context @returns {Shown} */
export function shownState(slot, context) {
  if (slot.familyPlaces && shows.family) return shows.family(slot, context);
  if (slot.status === "CANCELLED") return { state: "ended", left: () => [h("p", null, offText(slot))] };
  if (Date.parse(slot.endTime) < now()) return { state: "ended", left: () => [h("p", null, t("state.over"))] };
  const sent = deciding.get(placeKey(slot));
  if (sent) return decidingState(slot, sent);
  const booking = slot.myBooking;
  if (booking?.status === "HELD" && Date.parse(booking.heldUntil) > now()) return heldState(slot);
  if (booking?.status === "CONFIRMED") return yoursState(slot);
  if (slot.myWaitlistEntry) return waitingState(slot);
  if (hasBegun(slot)) return closedState(slot, { code: "SLOT_STARTED" });
  if (context.isByLot || context.opensAt > now()) return soonState(slot, context);
  const failed = newRefusal(slot)?.refusal;
  // What several people were refused is said below, and may still be right for this one.
  const refusal = (failed?.claims ? null : failed) ?? slot.myEligibility?.refusal;
  const swapFrom = context.swapFrom;
  const isFree = slot.remaining > 0 && slot.admission !== "QUEUE_ONLY";
  if (swapFrom && !slot.myBooking && isFree && isLifted(refusal, swapFrom.id)) return swappedState("open", slot, () => freeLeft(slot), swapFrom);
  if (refusal?.code === "TIME_CONFLICT") return clashState(slot, refusal);
  if (refusal?.code === "LIMIT_REACHED" && refusal.limit === 1 && context.own) return limitState(slot, context.own);
  if (refusal && !["SLOT_FULL", "NOT_YET_OPEN", "ALREADY_BOOKED", "QUEUE_ONLY"].includes(refusal.code)) {
    return closedState(slot, refusal);
  }
  if (slot.remaining <= 0) return fullState(slot, refusal);
  return openState(slot, context);
}

/** Say that a course is off, and why. @param {any} slot */
export function offText({ cancelReason }) {
  return t("state.cancelled") + (cancelReason ? t("whose", { name: cancelReason }) : "");
}

/** Whether nobody can book a course any more. @param {any} slot */
function hasBegun(slot) {
  return Date.parse(slot.startTime) <= now();
}

/** Return how many places can be booked: those of a course that has begun are not free. @param {any} slot @returns {number} */
export function freePlaces(slot) {
  return slot.status === "CANCELLED" || hasBegun(slot) ? 0 : Math.max(0, slot.remaining);
}

/**
 * Follow the draw of a campaign. What shows it is loaded with the first one.
 * @param {string} campaign @param {() => void} [onOver] the places are booked
 * @returns {ReturnType<typeof import("./draws.js").followDraw>}
 */
export function drawOf(campaign, onOver) {
  let isLeft = false;
  const lot = { again() {}, panel: () => null, entry: () => [""], stop: () => (isLeft = true) };
  Promise.all([import("./draws.js"), loadLaterTexts()]).then(([{ followDraw }]) => isLeft || Object.assign(lot, followDraw(campaign, onOver)), () => null);
  return /** @type {any} */ (lot);
}

/** Return the groups that a campaign is for. @param {any} campaign @returns {string} */
export function audienceOf(campaign) {
  return (campaign?.eligibleGroups ?? []).map(commas).join(" · ");
}

/** Return the groups that a course is for, of those of its campaign; 7* is every group that begins with 7. @param {any} slot @returns {string} */
export function groupsOf({ onlyForGroups = [] }) {
  return commas(onlyForGroups.map((/** @type {string} */ each) => each.replace("*", "…")));
}

/**
 * Whether a campaign, and a course of it, are for groups of this person or of a child, as far as is known.
 * @param {any} campaign @param {any} [slot] @param {any[]} [people] others of whom one may be meant
 */
export function isForMe(campaign, slot, people = [me, ...children()]) {
  const sets = [...(campaign?.eligibleGroups ?? []), slot?.onlyForGroups ?? []].filter((each) => each.length);
  /** @param {string[] | undefined} groups */
  const isFor = (groups) => !groups || sets.every((/** @type {string[]} */ set) => set.some(
    (name) => groups.some((each) => (name.endsWith("*") ? each.startsWith(name.slice(0, -1)) : each === name)),
  ));
  return people.some((each) => !each || (each.role ?? "MEMBER") !== "MEMBER" || isFor(each.groups));
}

/** Return the refusal that this row still shows. @param {any} slot */
export function newRefusal(slot) {
  const failed = refused.get(placeKey(slot));
  return failed && Date.now() - failed.at < SHOWN_MS ? failed : null;
}

/** @param {any} slot @param {any} refusal @returns {Shown} */
function closedState(slot, refusal) {
  const count = slot.onlyForGroups?.length;
  const text = () => (refusal.code === "NOT_ELIGIBLE" && count && count <= SHOWN_GROUPS ? t("state.onlyFor", { groups: groupsOf(slot) }) : reason(refusal));
  return { state: "closed", left: () => [h("p", null, icon("lock"), text())] };
}

/** @param {any} slot @param {import("./bookings.js").Deciding} sent @returns {Shown} */
export function decidingState(slot, sent) {
  const text = () => {
    if (sent.isLost) return h("p", null, t("state.noConnection"));
    return h("p", null, h("b", null, sent.position ? t("state.position", { ordinal: ordinal(sent.position) }) : freeText(slot)));
  };
  const left = () => [freeDashes(slot), text()];
  const action = () => button("", [t("action.deciding"), title(slot)], () => {}, { "aria-disabled": "true" });
  return { state: sent.isLost ? "lost" : "deciding", left, action };
}

/**
 * Offer to confirm what is reserved in a slot, or to give it back.
 * @param {any} slot @param {any[]} [all] the slot as each of those has it who are meant @returns {Shown}
 */
export function heldState(slot, all = [slot]) {
  const { heldUntil, waitedSince: isOffered } = slot.myBooking;
  const time = timeOf(heldUntil, slot.timeZone);
  const moment = countdown(Date.parse(heldUntil) - now());
  const left = () => [h(
    "p",
    null,
    h("b", null, icon("clock"), t(isOffered ? "state.offered" : "state.held", { time })),
    h("br"),
    t("state.left", { time: moment }),
  )];
  const act = (/** @type {string} */ kind, /** @type {string} */ label, /** @type {(slot: any) => any} */ does) =>
    button(kind, [label, title(slot)], () => all.forEach(does));
  const count = all.length;
  const action = () => act("", t(count > 1 ? "week.confirm" : isOffered ? "action.take" : "action.confirm", { count }), confirm);
  const second = () => [!isOffered && act("plain", t("action.extend"), extend), act("plain", t(isOffered ? "action.decline" : "week.giveBack"), cancel)];
  return { state: isOffered ? "offered" : "held", moment, left, action, second };
}

/** @param {any} slot @returns {Shown} */
function yoursState(slot) {
  const left = () => [places(slot.capacity, 1, "mine"), h("p", null, h("b", null, icon("tick", "tickmark"), t("state.yours")))];
  return { state: "yours", left, action: () => button("second", [icon("code"), t("action.code"), title(slot)], () => go(`#/slot/${slot.id}`)) };
}

/** @param {any} slot @returns {Shown} */
function waitingState(slot) {
  const { position } = slot.myWaitlistEntry;
  const text = () => (position ? t("state.waiting", { ordinal: ordinal(position) }) : t("state.waitingSomewhere"));
  const left = () => [places(slot.capacity, 0, "free"), h("p", null, h("b", null, icon("people"), text()))];
  return { state: "waiting", left, action: () => button("second", [t("action.seeLine"), title(slot)], () => go(`#/slot/${slot.id}`)) };
}

/** @param {any} slot @param {Context} context @returns {Shown} */
function soonState(slot, { opensAt, isForOthers, isByLot }) {
  if (isForOthers || !isForMe(null, slot)) return closedState(slot, { code: "NOT_ELIGIBLE" });
  const leftMs = opensAt - now();
  const moment = leftMs < 60_000 ? t("state.in", { time: countdown(leftMs) }) : t("state.from", { time: opening(opensAt, slot.timeZone) });
  const refusal = slot.myEligibility?.refusal;
  if (refusal && !["NOT_YET_OPEN", "SLOT_FULL", "DRAW_ONLY"].includes(refusal.code)) {
    return closedState(slot, refusal);
  }
  const count = slot.remaining;
  const text = () => {
    if (count <= 0) return t("state.full");
    if (isByLot) return t("state.byLot", { count });
    return count < slot.capacity ? freeText(slot) : t("state.places", { count });
  };
  const left = () => [freeDashes(slot), h("p", null, h("b", null, text()))];
  if (isByLot || count <= 0) return { state: "soon", moment: text(), left };
  return {
    state: "soon",
    moment,
    left,
    action: () => h("div", { class: "starred" }, starButton(slot), h("span", { class: "tag over" }, icon("clock"), moment)),
  };
}

/** Return a time of today, a weekday with a time within six days, or else a date with a time. @param {string | number} at @param {string} zone */
export function opening(at, zone) {
  const date = new Date(at);
  const leftMs = Number(date) - now();
  if (dateKey(date, zone) === dateKey(new Date(now()), zone)) return timeOf(date, zone);
  const isNear = leftMs > 0 && leftMs < 6 * 86_400_000;
  return isNear ? shortOf(date, zone) : shortMomentOf(date, zone);
}

/** Say when something opens. @param {number} at @param {string} zone */
export function opensText(at, zone) {
  const isToday = dateKey(new Date(at), zone) === dateKey(new Date(now()), zone);
  return isToday ? t("open.today", { time: timeOf(new Date(at), zone) }) : t("open.from", { time: opening(at, zone) });
}

const STARS = "slotlock.stars";

/** Return the ids of the courses that were starred in this browser. @returns {Set<string>} */
export function stars() {
  return local.read(STARS, (ids) => new Set(ids)) ?? new Set();
}

/** Return a button that stars a course before the opening. @param {any} slot */
function starButton(slot) {
  const isStarred = stars().has(slot.id);
  return button("plain", [icon("star", isStarred ? "full" : ""), hidden(`${t("action.star")}${t("whose", { name: slot.title })}`)], (event) => {
    const all = stars();
    if (!all.delete(slot.id)) all.add(slot.id);
    local.set(STARS, JSON.stringify([...all].slice(-200)));
    stayUnder(/** @type {HTMLElement} */ (event.currentTarget));
  }, { "aria-pressed": String(isStarred) });
}

/** Draw, and keep this element where it is on the screen. @param {HTMLElement} element */
export function stayUnder(element) {
  const { top } = element.getBoundingClientRect();
  redraw();
  requestAnimationFrame(() => scrollBy(0, element.isConnected ? element.getBoundingClientRect().top - top : 0));
}

/** @param {any} slot @param {any} refusal @returns {Shown} */
function clashState(slot, refusal) {
  const other = refusal.otherBooking;
  const zone = other?.slot.timeZone ?? slot.timeZone;
  const text = () => t("state.clash", { title: other?.slot.title ?? "", time: shortOf(refusal.otherMeeting.startTime, zone) });
  return swappedState("clash", slot, () => h("p", null, icon("overlap"), text()), other && { id: other.id, title: other.slot.title });
}

/** @param {any} slot @param {any} own the slot of the one booking that is allowed @returns {Shown} */
function limitState(slot, own) {
  // Beside the button, the reason would need more lines than a row has.
  const left = () => (slot.remaining > 0 ? freeLeft(slot) : h("p", null, icon("lock"), t("state.hasPlace", { title: own.title })));
  return swappedState("closed", slot, left, { id: own.myBooking.id, title: own.title });
}

/** The course for which somebody is asked whether to swap. */
let swapTo = "";

/**
 * Offer to swap, once somebody confirms it: the old place may be gone at once.
 * @param {string} state @param {any} slot @param {() => any} left @param {{id: string, title: string} | null} booking to move here @returns {Shown}
 */
export function swappedState(state, slot, left, booking) {
  if (!booking || slot.remaining <= 0 || slot.admission === "QUEUE_ONLY") return { state, left: () => [left()] };
  const names = { from: booking.title, to: slot.title };
  const ask = (/** @type {string} */ id) => () => {
    swapTo = id;
    if (id) say(t("action.swapAsk", names), slot.id);
    redraw();
  };
  const act = (/** @type {string} */ kind, /** @type {() => void} */ does) =>
    button(kind, [icon("swap"), t("action.swap"), hidden(t("action.swapFor", names))], does);
  const at = placeKey(slot);
  if (swapTo !== at) return { state, left: () => [left()], action: () => act("second", ask(at)) };
  return {
    state,
    moment: swapTo,
    left: () => [h("p", null, h("b", null, t("action.swapAsk", names)))],
    action: () => button("second", [t("week.keep"), title(slot)], ask("")),
    second: () => act("", () => {
      swapTo = "";
      swap(slot, booking.id);
    }),
  };
}

/** Whether a reason not to book ends when this booking moves. @param {any} refusal @param {string} bookingId */
function isLifted(refusal, bookingId) {
  return !refusal || refusal.code === "LIMIT_REACHED" || refusal.otherBooking?.id === bookingId;
}

/** @param {any} slot @param {any} refusal @returns {Shown} */
export function fullState(slot, refusal) {
  const waiting = () => (slot.waitlistLength ? t("state.waitingCount", { count: slot.waitlistLength }) : "");
  const isLost = refused.has(slot.id) && refusal?.code === "SLOT_FULL";
  const why = () => isLost && [h("br"), h("span", { class: "soft" }, t("refusal.SLOT_FULL"))];
  const left = () => [freeDashes(slot), h("p", null, h("b", null, t("state.full")), waiting(), why())];
  const action = () => button("second", [t("action.join"), title(slot)], () => asUser(() => join(slot)));
  return { state: "full", left, ...(slot.waitlistCapacity > slot.waitlistLength && { action }) };
}

/** @param {any} slot @param {Context} context @returns {Shown} */
export function openState(slot, { isOld, readAt, isAside, isPage, several }) {
  const isQueue = slot.admission === "QUEUE_ONLY";
  const isAlmost = slot.remaining <= Math.max(ALMOST, Math.floor(slot.capacity / 10)) && slot.capacity > ALMOST;
  const moment = isOld ? t("state.age", { count: Math.max(1, Math.round((Date.now() - readAt) / 60_000)) }) : "";
  const isLast = slot.remaining === 1 && slot.capacity > 1;
  const text = () => h(
    "p",
    null,
    isLast ? [h("b", null, t("state.last")), t("state.lastOf", { all: slot.capacity })] : h("b", null, freeText(slot)),
    isQueue && [h("br"), h("span", { class: "soft" }, t("state.inOrder"))],
    moment && h("span", { class: "soft" }, moment),
  );
  const kind = isOld || isAside ? "second" : "";
  const isForAll = others().length > 0 && Boolean(shows.below); // until then, one books for oneself
  const action = () => several && !isQueue ? tick(slot, several) : isForAll
    ? button(
      kind,
      [t(isQueue ? "action.queueFor" : "action.bookFor"), title(slot)],
      () => chooseFor(slot),
      { "aria-expanded": String(whom.openAt === slot.id) },
    )
    : button(kind, [t(isQueue ? "action.queue" : "action.book"), title(slot)], () => asUser(() => book(slot)));
  const state = isOld ? "stale" : isQueue ? "queue" : isAlmost ? "almost" : "open";
  return { state, moment, left: () => [freeDashes(slot), text()], isForAll, ...(!(isForAll && isPage) && { action }) };
}

/** Return a box that chooses a slot, with others. @param {any} slot @param {Set<string>} several */
export function tick({ id, title: name }, several) {
  const set = (/** @type {boolean} */ isChosen) => void (isChosen ? several.add(id) : several.delete(id));
  return checkbox("check", hidden(name), { checked: several.has(id) }, set);
}

/** Show in the row of a slot for whom to book, or hide it. @param {any} slot */
export function chooseFor(slot) {
  whom.openAt = whom.openAt === slot.id ? "" : slot.id;
  redraw();
  see(`[data-key="below ${slot.id}"]`);
}

/** Sign in before, and come back. @param {() => void} action */
function asUser(action) {
  if (me) return action();
  signInFirst();
}

/** @param {any} slot */
function freeText(slot) {
  return t("state.free", { free: slot.remaining, all: slot.capacity, count: slot.remaining });
}

/** Return what a row shows of a course with free places. @param {any} slot */
function freeLeft(slot) {
  return [freeDashes(slot), h("p", null, h("b", null, freeText(slot)))];
}

/** @param {any} slot */
function freeDashes(slot) {
  return places(slot.capacity, slot.remaining, "free");
}

/** @param {any} slot */
function title(slot) {
  return whose(slot.title);
}
