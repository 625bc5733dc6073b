// @ts-check
/** Several places at once: for whom to book, courses that are chosen together, the dates of a series, and invitations to teams. */
import { SEVERAL, book, bookAll, bookDates, bookFor, deciding, leaveQueue, onChange, placeOf, reason, refused } from "./bookings.js";
import { now } from "./clock.js";
import { me, newKey, resultOf, run, sendUntilAnswered } from "./client.js";
import { h, redraw } from "./kernel.js";
import { say } from "./page.js";
import { allPlaces, children, invitations, notePlaces, others, placeIn, placeKey, placesFor, readPeople, shows, whom } from "./people.js";
import { askOnce, button, checkbox, hidden, icon, notice, section, whose } from "./parts.js";
import { freePlaces } from "./slotstate.js";
import { ordinal, sentences, shortMomentOf, t } from "./text.js";

/** @typedef {import("./people.js").Person} Person */
/** In a larger team, nobody but oneself is chosen at first; parents choose all children, and nobody else. */
const BOTH = 2;
/** So long it is shown what came of an invitation. */
const ANSWERED_MS = 15_000;
let answered = "";

/** Return this person and the others of their teams. @returns {Array<import("./people.js").Person>} */
function everybody() {
  return [me, ...others()];
}

/** @param {string} id */
const isChild = (id) => children().some((each) => each.id === id);

/** Return who is in a team with this person. */
export const teammates = () => others().filter(({ id }) => !isChild(id));

/** Whether a person is ticked at first. @param {Person} person */
const isFirst = ({ id }) => (children().length ? isChild(id) : id === me?.id || everybody().length <= BOTH);

/**
 * Return who is ticked: nobody, if the places are too few for all who would be at first, so that nobody is preferred.
 * @param {string} at a slot @param {Person[]} people @param {number} [free] places
 */
function chosenOf(at, people, free = Infinity) {
  const isEnough = people.filter(isFirst).length <= free;
  return people.filter((each) => whom.ticked.get(placeOf(at, each.id)) ?? (isEnough && isFirst(each)));
}

/**
 * Return what is known of others and a slot, and a choice for whom to book.
 * @param {any} slot @param {{isChoosing?: boolean, hasMe: boolean, isPage?: boolean}} more
 */
function below(slot, { isChoosing, hasMe, isPage }) {
  return belowSlot(slot, isPage, isChoosing && choice(slot, hasMe));
}

/** @param {any} slot @param {boolean | undefined} isPage @param {any} choice for whom to book */
export function belowSlot(slot, isPage, choice) {
  const failed = refused.get(slot.id)?.refusal;
  const content = [
    teammates().map((each) => stateOfOther(slot, each, isPage)),
    failed?.claims && notice("stop", "warning", reason(failed)),
    choice,
  ].flat().filter(Boolean);
  if (!content.length) return null;
  const kind = isPage ? "sheet stack" : "below stack";
  return h("div", { class: kind, role: "group", "aria-label": t("whom.forWhom"), "data-key": `below ${slot.id}` }, content);
}

/** Say what another person has here. @param {any} slot @param {import("./people.js").Person} person @param {boolean} [isPage] */
function stateOfOther(slot, { id, name }, isPage) {
  const at = placeOf(slot.id, id);
  const sent = deciding.get(at);
  const place = placesFor(slot.id).find(({ person }) => person.id === id);
  const failed = refused.get(at)?.refusal;
  const key = { "data-key": at };
  if (sent) return h(
    "div",
    { class: "row", ...key },
    h("p", null, icon("people"), " ", sent.isLost ? t("state.noConnection")
      : sent.position ? t("whom.queued", { name, ordinal: ordinal(sent.position) })
      : t("whom.deciding", { name })),
    isPage && sent.ticketId && button("plain", [t("slot.leaveQueue"), whose(name)], () => leaveQueue(at)),
  );
  if (failed) return h("p", key, icon("warning"), " ", reason(failed));
  if (!place) return null;
  const text = h("p", { class: "good", ...key }, icon("tick"), " ", t("whom.has", { name }));
  if (!isPage) return text;
  const yes = t("week.giveBack");
  const texts = { label: [yes, whose(name)], question: t("whom.giveBackAsk", { name }), yes, no: t("week.keep") };
  return h("div", { class: "row", ...key }, text, askOnce(`back ${at}`, "plain", texts, () => giveBack(slot.id, place)));
}

/** Give back the place that was booked here for another person. @param {string} slotId @param {{id: string, person: any}} place */
async function giveBack(slotId, { id, person }) {
  const key = newKey();
  const result = await sendUntilAnswered(() => resultOf("cancelBooking", { id, key }));
  if (!result) return;
  if (result.booking || result.code === "BOOKING_NOT_FOUND") notePlaces(slotId, placesFor(slotId).filter((each) => each.id !== id));
  else refused.set(placeOf(slotId, person.id), { refusal: { ...result, claims: [{ slotId, title: "", person }] }, at: Date.now() });
  say(result.booking ? t("whom.gaveBack", person) : reason(result), slotId);
  redraw();
}

/**
 * Return a box for each of these people, and for those who have a place or cannot have one.
 * @param {string} slot for which they are chosen @param {Person[]} people @param {Person[]} chosen @param {any[]} [more]
 */
function whomFields(slot, people, chosen, more) {
  const set = (/** @type {Person} */ person) => (/** @type {boolean} */ isTicked) => {
    // Later, no place that is taken or given back changes the ticks.
    for (const each of people) whom.ticked.set(placeOf(slot, each.id), each === person ? isTicked : chosen.includes(each));
  };
  return h(
    "fieldset",
    { "data-key": "whom" },
    h("legend", null, h("strong", null, t("whom.forWhom"))),
    people.map((each) => checkbox(
      "check",
      each.id === me?.id ? t("whom.me") : each.name,
      { "data-key": each.id, checked: chosen.includes(each) },
      set(each),
    )),
    more,
  );
}

/** Let somebody choose for whom to book. @param {any} slot @param {boolean} hasMe */
function choice(slot, hasMe) {
  const free = everybody().filter((each) => (each.id === me?.id ? hasMe : isFree(slot, each)));
  return free.length ? choiceAmong(slot, free, slot.admission === "QUEUE_ONLY" ? "queue" : "book") : null;
}

/** Whether another person has no place that was booked here. @param {any} slot @param {import("./people.js").Person} person */
export function isFree({ id }, person) {
  return !deciding.has(placeOf(id, person.id)) && !placesFor(id).some((each) => each.person.id === person.id);
}

/** The text for oneself alone. */
const FOR_ME = { book: "whom.bookMe", queue: "action.queue", join: "action.join" };

/**
 * Let somebody choose among people.
 * @param {any} slot @param {Array<import("./people.js").Person>} free @param {"book" | "queue" | "join"} kind
 * @param {any[]} [fixed] boxes of those who cannot be chosen @param {(chosen: any[]) => any} [act] what is done for the chosen ones
 */
export function choiceAmong(slot, free, kind, fixed, act) {
  const places = kind === "book" ? freePlaces(slot) : Infinity;
  const chosen = chosenOf(slot.id, free, places);
  const count = chosen.length;
  const isOnlyMe = count === 1 && chosen[0].id === me?.id;
  const send = () => {
    whom.openAt = "";
    if (act) act(chosen);
    else if (isOnlyMe) book(slot);
    else bookFor(slot, chosen);
  };
  const label = !count ? t("action.bookFor")
    : isOnlyMe ? t(FOR_ME[kind])
    : count === 1 ? t(`whom.${kind}One`, chosen[0])
    : t(count === BOTH ? `whom.${kind}Both` : `whom.${kind}All`, { count });
  return [
    whomFields(slot.id, free, chosen, fixed),
    free.length > places && h("p", null, t("whom.few", { count: places })),
    h("div", null, button("", [label, whose(slot.title)], send, { disabled: !count || count > places })),
  ];
}

/** A request has at most so many places, or ids. */
const MOST_CLAIMS = 50;
const MOST_IDS = 100;

/** Book or reserve what is chosen in a list, and say what came of it, also after a reload. @param {any[]} slots of the list */
function bar(slots) {
  const chosen = slots.filter(({ id }) => whom.several?.has(id));
  const able = everybody().filter((person) => slots.some((slot) => shows.fits?.(slot, person)));
  const people = chosenOf(SEVERAL, able);
  const wanted = chosen.map((slot) => people
    .filter((person) => shows.fits?.(slot, person))
    .map((person) => ({ slotId: slot.id, title: slot.title, person, timeZone: slot.timeZone, meetings: slot.meetings })));
  const claims = wanted.flat();
  const failed = refused.get(SEVERAL)?.refusal;
  const act = (/** @type {boolean} */ hold) => async () => {
    await bookAll(SEVERAL, claims, hold);
    if (refused.has(SEVERAL)) return;
    whom.several = null;
    redraw();
  };
  const isBusy = deciding.has(SEVERAL);
  const few = isBusy ? [] : chosen.flatMap((slot, index) => {
    const [count, { length }] = [freePlaces(slot), wanted[index]];
    return count < length ? t("whom.why", { name: slot.title, why: t(count ? "whom.tooMany" : "their.SLOT_FULL", { count, chosen: length }) }) : [];
  });
  const trouble = few.length ? sentences([failed ? t("whom.none") : "", ...few]) : failed && reason(failed);
  if (!whom.several && failed) return h("aside", { class: "news", "data-key": "several" }, notice(
    "stop",
    "warning",
    reason(failed),
    button("plain", [icon("cross"), hidden(t("news.hide"))], () => {
      refused.delete(SEVERAL);
      redraw();
    }),
  ));
  const more = { disabled: !claims.length || few.length > 0 || claims.length > MOST_CLAIMS || isBusy };
  return h(
    "aside",
    { class: "news", "aria-labelledby": "several", "data-key": "several" },
    h(
      "div",
      { class: "notice several" },
      h("h2", { id: "several" }, whom.several ? t("several.chosen", { count: chosen.length }) : t("action.deciding")),
      trouble && h("p", { class: "error" }, icon("warning"), h("span", null, trouble)),
      whom.several && [
        others().length > 0 && whomFields(SEVERAL, able, people),
        h(
          "div",
          { class: "row" },
          button("", t(isBusy ? "action.deciding" : "several.book"), act(false), more),
          button("second", t("several.reserve"), act(true), more),
        ),
        h("p", { class: "small soft" }, t("several.reserveHelp")),
      ],
    ),
  );
}

/** After a change, the dates of a series are read again. */
const REREAD_MS = 300;
/** The dates of a series that can be booked, by its id. @type {Map<string, any[] | null>} */
const datesOf = new Map();

/** Offer all dates of a series. @param {any} slot also as a child has it @param {any} [choice] for whom */
function dates({ series, title, person }, choice) {
  const id = series?.id;
  if (!id) return null;
  if (!datesOf.has(id)) {
    datesOf.set(id, null);
    readDates(id);
  }
  const coming = (datesOf.get(id) ?? []).filter((each) => Date.parse(each.startTime) > now() && each.status !== "CANCELLED");
  const at = placeKey({ id, person });
  const result = refused.get(at)?.refusal;
  const open = coming.filter((each) => !placeIn(each, person?.id).myBooking);
  if (coming.length < 2 || (!open.length && !result && !choice)) return null;
  const isBusy = deciding.has(at);
  const act = (/** @type {string} */ mode) => () => bookDates(id, title, mode, person);
  return section("dates", t("series.all", { count: coming.length }), [
    choice ?? (others().length > 0 && h("p", null, t("whom.forWhom"), t("whose", { name: t("whom.me") }))),
    result && notice(result.bookings ? "" : "stop", "warning", seriesText(result, coming)),
    open.length > 0 && h(
      "div",
      { class: "row" },
      open.length === coming.length && button("", t(isBusy ? "action.deciding" : "series.allOrNone"), act("ALL_OR_NONE"), { disabled: isBusy }),
      button("second", t("series.free"), act("WHAT_IS_FREE"), { disabled: isBusy }),
    ),
  ], { kind: "sheet stack" });
}

/** @param {string} id of a series */
async function readDates(id) {
  datesOf.set(id, await shows.read("seriesDates", { id }, "slots").catch(() => datesOf.get(id) ?? null));
  redraw();
}

/** Say which dates of a series were not booked, and why. @param {any} result @param {any[]} all */
function seriesText(result, all) {
  if (!result.refusals) return reason(result);
  const whys = result.refusals.map((/** @type {any} */ { slotId, refusal }) => {
    const date = all.find((each) => each.id === slotId);
    const name = date ? shortMomentOf(date.startTime, date.timeZone) : "";
    return t("whom.why", { name, why: refusal.code === "SLOT_FULL" ? t("their.SLOT_FULL") : reason({ ...refusal, claims: result.claims }) });
  });
  return sentences([result.bookings ? t("series.booked", { count: result.bookings.length }) : t("whom.none"), ...whys]);
}

/** Ask whether the places that were booked here for others are still theirs. */
async function check() {
  const places = Object.values(allPlaces()).flat().filter(({ person }) => !isChild(person.id)); // the list says what children have
  const ids = places.map(({ id }) => id).slice(-MOST_IDS);
  if (!ids.length || !me) return;
  const { nodes } = await run("placesOfOthers", { ids }).catch(() => ({ nodes: null }));
  if (!nodes) return;
  const gone = ids.filter((_, index) => !["CONFIRMED", "HELD"].includes(nodes[index]?.status));
  for (const [slotId, places] of Object.entries(allPlaces())) {
    const left = places.filter(({ id }) => !gone.includes(id));
    if (left.length < places.length) notePlaces(slotId, left);
  }
}

/** Return the invitations to teams, each with an answer. @param {() => any} [onAnswer] */
function invited(onAnswer) {
  /** @param {string} name @param {any} invitation @param {string} text */
  const answer = (name, { teamId }, text) => async () => {
    const result = await sendUntilAnswered(() => resultOf(name, { teamId }));
    if (!result) return;
    answered = result.code ? reason(result) : text;
    say(answered);
    setTimeout(() => (answered = ""), ANSWERED_MS);
    await (onAnswer ?? readPeople)();
    redraw();
  };
  return [
    invitations().map((each) => h(
      "div",
      { class: "notice", "data-key": each.teamId },
      icon("people"),
      h("p", null, t("account.invitation", { name: each.teamName, by: each.invitedBy?.name ?? "" })),
      h(
        "div",
        { class: "row" },
        button("", [t("account.accept"), whose(each.teamName)], answer("acceptTeamInvitation", each, t("account.accepted", { name: each.teamName }))),
        button("plain", [t("action.decline"), whose(each.teamName)], answer("declineTeamInvitation", each, t("account.declined"))),
      ),
    )),
    answered && h("div", { "data-key": "answered" }, notice("", "people", answered)),
  ];
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let rereading;
onChange(() => {
  clearTimeout(rereading);
  rereading = setTimeout(() => [...datesOf.keys()].forEach(readDates), REREAD_MS);
});
Object.assign(shows, { below, invited, check, bar, dates, fits: isFree });
check();
