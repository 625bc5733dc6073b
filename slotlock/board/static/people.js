// @ts-check
/** For whom a person books: themselves, their children, and who is in a team with them. Without these, nothing of this shows. */
import { me, onSession, run, userId } from "./client.js";
import { redraw } from "./kernel.js";
import { keepWeek, keptWeek } from "./offline.js";
import { tab } from "./storage.js";

const STORED_PEOPLE = "slotlock.people";
/** So long a page that is loaded again asks nothing: in a rush, many are. */
const YOUNG_PEOPLE_MS = 600_000;
/** So often a page that shows courses asks while somebody has not answered an invitation to a team. */
const AWAITED_MS = 20_000;

/**
 * @typedef {{id: string, name: string, groups?: string[]}} Person
 * @typedef {{id: string, person: Person}} Place
 * @typedef {{user: string | undefined, readAt: number, others: Person[], invitations: any[], leads?: boolean, isAwaiting: boolean,
 *   places: Record<string, Place[]>}} Persons
 * `others` has the children, too, with their groups; `places` has the bookings that were made here for others, by slot
 */
/** @type {Persons} */
const NOBODY = { user: undefined, readAt: 0, others: [], invitations: [], isAwaiting: false, places: {} };
let persons = NOBODY;
let askedAt = 0;

/**
 * Whose wishes a page has: they are read as `userId` and sent for `users`, and `settle` goes to those whom the draw is for.
 * @typedef {{userId?: string, users: string[] | null, text: typeof import("./text.js").t, fits: (slot: any) => boolean,
 *   settle: (found: any) => void, links: () => any, note: (saved: any, ranked: string[], change: (ranked: string[], said: string) => void) => any}} Wishers
 */

/**
 * What shows people, once it is loaded: below a slot, and invitations to teams; and what asks whether others still have their places.
 * @type {{
 *   below?: (slot: any, more: {isChoosing?: boolean, hasMe: boolean, isPage?: boolean}) => any,
 *   invited?: (onAnswer?: () => any) => any,
 *   bar?: (slots: any[]) => any,
 *   inWay?: (refusal: any, person: Person, claims: any[], refusals?: any[]) => any,
 *   dates?: (slot: any, choice?: any) => any,
 *   account?: (part: (id: string, ...content: any[]) => any) => any,
 *   family?: (slot: any, context: any) => any,
 *   places?: (slot: any, context: any, own: () => any) => any[],
 *   fits?: (slot: any, person: Person) => boolean,
 *   watch?: (load: () => void) => Array<() => void>,
 *   ofWeek?: <T>(week: T) => T & {days?: any},
 *   kept?: (slotId: string) => any,
 *   chips?: () => any,
 *   wishes?: (campaignId: string, userIds: string[]) => Partial<Wishers> | null,
 *   text?: typeof import("./text.js").t,
 *   said?: (slot: any, name: string, values: any) => string,
 *   load: () => void,
 *   read: (name: string, variables: any, field: string) => Promise<any[] | null>,
 *   slot: () => string,
 *   check?: () => void,
 * }} `slot` names the operation that reads one, and `read` reads a list. For parents, `family` is the state of a slot, `places` are
 * the parts of its page, `account` is a part of the account, `text` is what is said of
 * a family instead, `said` is what was done for a child, `watch` follows what the children
 * have, `ofWeek` is what the week and its days show of all, as `chips` choose, `kept` is a course without a network, `fits` says
 * who can have a place, and `inWay` which other course keeps somebody from one.
 */
export const shows = { load: () => {}, read: async () => null, slot: () => "slot" };

/**
 * The slot in whose row somebody chooses for whom to book, whether places are ticked once somebody touched the ticks of their slot, so
 * that each slot begins anew, and the slots of a choice of several, with their campaign.
 * @type {{openAt: string, ticked: Map<string, boolean>, several: Set<string> | null, campaign?: string}}
 */
export const whom = { openAt: "", ticked: new Map(), several: null };

/** Return the children of this person, and who is in a team with them. */
export function others() {
  return persons.others;
}

/** Return the children of this person: whose guardian they are. */
export function children() {
  return persons.others.filter(({ groups }) => groups);
}

/** Return under which name something of a slot is kept: that of a child has its id. @param {{id: string, person?: Person}} slot as a child has it */
export function placeKey({ id, person }) {
  return person ? `${id} ${person.id}` : id;
}

/** Return what a child has in a slot, or without one the slot, which has one's own. @param {any} slot @param {string} [userId] @returns {any} */
export function placeIn(slot, userId) {
  return (userId ? slot?.familyPlaces?.find((/** @type {any} */ each) => each.user.id === userId) : slot) ?? {};
}

/** Whether this person leads courses. */
export function leads() {
  return persons.leads;
}

/** Return the open invitations to teams. */
export function invitations() {
  return persons.invitations;
}

/** Return the places that were booked here for others, by slot. */
export function allPlaces() {
  return persons.places;
}

/** Return the places that were booked here for others. @param {string} slotId */
export function placesFor(slotId) {
  return persons.places[slotId] ?? [];
}

/** Note which places others have by a booking that was made here. @param {string} slotId @param {Place[]} places */
export function notePlaces(slotId, places) {
  keepPeople({ places: { ...persons.places, [slotId]: places } });
}

/** @param {Partial<Persons>} changes */
function keepPeople(changes) {
  persons = { ...persons, ...changes };
  tab.set(STORED_PEOPLE, JSON.stringify(persons));
  redraw();
}

/** Ask who is in the teams of this person, unless that was asked lately. @param {number} [youngMs] */
export async function readPeople(youngMs = 0) {
  const user = me?.id;
  if (!user || Date.now() - persons.readAt < youngMs) return;
  askedAt = Date.now();
  const data = await run("people").catch(() => null);
  if (!data || persons.user !== user) return;
  const mates = data.myTeams.flatMap((/** @type {any} */ team) => team.members.map((/** @type {any} */ each) => each.user));
  const own = data.me?.dependents ?? [];
  const all = [...own, ...mates, ...own]; // a child who is a teammate as well stays with the others, and has groups
  const found = new Map(all.filter((/** @type {any} */ each) => each && each.id !== user).map((/** @type {any} */ each) => [each.id, each]));
  const isAwaiting = data.myTeams.some((/** @type {any} */ team) => team.invitations.length);
  keepPeople({ readAt: Date.now(), others: [...found.values()], invitations: data.myTeamInvitations, leads: data.me?.leadsSlots, isAwaiting });
  keepWeek(keptWeek(), children());
}

/** Learn soon of who joins a team, while somebody looks at courses. */
export function awaitPeople() {
  if (persons.isAwaiting && !document.hidden && Date.now() - askedAt > AWAITED_MS) readPeople();
}

/** Begin with what this tab keeps of the person, or with the children of the kept week; nothing stays after they signed out. */
function beginPeople() {
  const user = userId();
  if (me === null) tab.remove(STORED_PEOPLE);
  if (user !== persons.user) {
    const isUsable = (/** @type {any} */ it) => it.user === user && it.invitations && it.places && it.others.every((/** @type {any} */ each) => each.id);
    const kept = tab.read(STORED_PEOPLE, (it) => isUsable(it) && it);
    persons = kept ?? { ...NOBODY, user, others: keptWeek()?.children ?? [] };
    whom.openAt = "";
    whom.several = null;
  }
  readPeople(YOUNG_PEOPLE_MS);
}
onSession(beginPeople);
beginPeople(); // the session may be older than this module
