// @ts-check
/** A slot as a row: its time, what it is, its state, and one action. */
import { deciding, placeOf, refused } from "./bookings.js";
import { h } from "./kernel.js";
import { others, placesFor, shows, whom } from "./people.js";
import { newRefusal, shownState, stars, tick } from "./slotstate.js";
import { compareNames, dateKey, dayOf, language, rhythmOf, t, timeOf } from "./text.js";

/** Return its number, where it is, and who leads it. @param {any} slot */
export function whereOf(slot) {
  const resources = (slot.resources ?? []).map((/** @type {any} */ each) => each.name);
  return [slot.number && t("slot.number", { number: slot.number }), slot.location, ...resources].filter(Boolean).join(" · ");
}

/** Return what is known, and the actions. @param {import("./slotstate.js").Shown} shown */
export function footOf({ left, action, second }) {
  return h("div", { class: "foot" }, h("div", { class: "left" }, left()), (action || second) && h("div", { class: "act" }, action?.(), second?.()));
}

/** Return a row of a slot. @param {any} slot @param {import("./slotstate.js").Context} context */
export function slotRow(slot, context) {
  const shown = shownState(slot, context);
  const { isAside, swapFrom, own, several } = context;
  // What was chosen can be left out, also once it is full.
  if (several?.has(slot.id)) shown.action = () => tick(slot, several);
  const isStarred = shown.state === "soon" && stars().has(slot.id);
  return {
    key: slot.id,
    signature: JSON.stringify([
      shown.state,
      shown.moment,
      isStarred,
      language,
      isAside,
      swapFrom,
      own?.id,
      slot,
      deciding.get(slot.id),
      refused.get(slot.id)?.at,
      newRefusal(slot)?.at,
      others().length && signatureBelow(slot),
      several?.has(slot.id),
    ]),
    build: () => rowElement(slot, shown, context.isOfAnyDay),
  };
}

/** Return what is known of others and their places. @param {any} slot */
function signatureBelow({ id }) {
  const theirs = others().map((each) => [each, deciding.get(placeOf(id, each.id)), refused.get(placeOf(id, each.id))]);
  return [theirs, placesFor(id), whom.openAt === id && [...whom.ticked], Boolean(shows.below)];
}

/** @param {any} slot @param {import("./slotstate.js").Shown} shown @param {boolean} [isOfAnyDay] whether no heading says the day */
function rowElement(slot, shown, isOfAnyDay) {
  const name = slot.status === "CANCELLED" ? h("s", null, slot.title) : slot.title;
  return h(
    "li",
    { class: "slot", "data-state": shown.state, "data-key": slot.id },
    h(
      "p",
      { class: "when" },
      h("time", { datetime: slot.startTime }, timeOf(slot.startTime, slot.timeZone)),
      " ",
      h("span", null, timeOf(slot.endTime, slot.timeZone)),
    ),
    h(
      "div",
      { class: "what" },
      h("h3", null, h("a", { href: `#/slot/${slot.id}` }, name)),
      isOfAnyDay && h("p", null, dayOf(slot.startTime, slot.timeZone)),
      rhythmOf(slot) && h("p", null, rhythmOf(slot)),
      h("p", null, whereOf(slot)),
    ),
    footOf(shown),
    others().length > 0 && shows.below?.(slot, { isChoosing: shown.isForAll && whom.openAt === slot.id, hasMe: true }),
  );
}

/** The slots of a list by their days: only what a read brings changes the order. @type {WeakMap<any[], Map<string, any[]>>} */
const daysOf = new WeakMap();

/** Return slots by their days, in order. @param {any[]} slots @returns {Map<string, any[]>} */
export function byDay(slots) {
  const known = daysOf.get(slots);
  if (known) return known;
  /** @type {Map<string, any[]>} */
  const days = new Map();
  for (const slot of [...slots].sort((a, b) => a.startTime.localeCompare(b.startTime) || compareNames(a.title, b.title))) {
    const key = dateKey(slot.startTime, slot.timeZone);
    const day = days.get(key) ?? [];
    day.push(slot);
    days.set(key, day);
  }
  daysOf.set(slots, days);
  return days;
}
