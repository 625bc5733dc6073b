// @ts-check
/** What stands in the way of a campaign before it opens, each with what helps, and what is left to do while it is open. */
import { now } from "../../clock.js";
import { run } from "../../client.js";
import { number, sentences, t } from "../../text.js";
import { groupsOfNobody, readGroups } from "./forms/groups.js";
import { whenOf } from "./forms/localtime.js";

const ENOUGH_PASSWORDS = 0.8;

/**
 * A check: whether it is good, a warning or a problem, and what helps, each as its text and what the page does or the address of another page.
 * @typedef {{kind: "good" | "late" | "bad", text: string, helps: Array<[string, string]>}} Check
 */

/** @param {Check["kind"]} kind @param {string} text @param {...[string, string]} helps @returns {Check} */
function check(kind, text, ...helps) {
  return { kind, text, helps };
}

/**
 * Return all checks of a campaign, in order. Once everybody can book, its places and times are no task any more.
 * @param {any} campaign
 * @param {any[]} slots that are not canceled
 * @param {string} zone
 * @returns {Promise<Check[]>}
 */
export async function readChecks(campaign, slots, zone) {
  const [found] = await Promise.all([run("campaignReadiness", { id: campaign.id }).then((each) => each.campaignReadiness), readGroups(campaign)]);
  if (!found) return [];
  const isOpen = campaign.published && Date.parse(campaign.opensAt) <= now();
  if (isOpen && Date.parse(campaign.closesAt) <= now()) return [];
  const before = isOpen ? [] : [placesCheck(slots, found), tooFewCheck(campaign, found), opensCheck(campaign, zone), pastCheck(found)];
  const groups = [groupsCheck(campaign), ...slots.map(groupsOfSlotCheck)];
  const later = [...groups, ...roomChecks(found), draftsCheck(campaign, slots), passwordCheck(campaign.id, found, zone, isOpen)];
  return [...before, ...later].filter((each) => each !== null);
}

/** Return how many courses there are: the dates of a series are one. @param {any[]} slots */
export function courseCount(slots) {
  return new Set(slots.map((slot) => slot.seriesId ?? slot.id)).size;
}

/** @returns {[string, string]} */
function addHelp() {
  return [t("plan.add"), "add"];
}

/** @param {{id: string, title: string}} slot @returns {[string, string]} */
function changeHelp({ id, title }) {
  return [t("check.change", { title }), `#/course/${id}/edit`];
}

/** @param {any[]} slots @param {any} found @returns {Check} */
function placesCheck(slots, { places, userCount }) {
  if (!slots.length) return check("bad", t("empty.campaign"), addHelp());
  if (!userCount) return check("late", t("check.nobody"), [t("people.title"), "#/people"]);
  const text = t("check.places", {
    courses: t("orga.courses", { count: courseCount(slots) }),
    places: t("check.placeCount", { count: places }),
    count: userCount,
  });
  return userCount > places ? check("late", t("check.tooFew", { text, count: userCount - places }), addHelp()) : check("good", text);
}

/** @param {any} campaign @param {any} found @returns {Check | null} */
function tooFewCheck(campaign, { bookableSlots, usersWithTooFewSlots: { count } }) {
  if (!count || !bookableSlots) return null;
  const text = [
    t("check.mayChoose", { count: campaign.maxBookings, people: t("people.count", { count, shown: number(count) }) }),
    t("check.canChoose", { count: bookableSlots }),
  ];
  return check("late", sentences(text), addHelp(), [t("check.changePlaces"), "settings"]);
}

/** @param {any} campaign @param {string} zone @returns {Check} */
function opensCheck({ opensAt, closesAt }, zone) {
  const [opens, closes] = [whenOf(opensAt, zone), whenOf(closesAt, zone)];
  /** @type {[string, string]} */
  const help = [t("check.changeTimes"), "settings"];
  if (Date.parse(closesAt) <= now()) return check("bad", t("check.closed", { time: closes }), help);
  if (Date.parse(opensAt) <= now()) return check("late", t("check.opensAtOnce", { time: opens }), help);
  return check("good", t("orga.times", { opens, closes }));
}

/** @param {any} campaign @returns {Check | null} */
function groupsCheck({ eligibleGroups }) {
  return nobodyCheck(eligibleGroups.flat(), [t("check.changeGroups"), "settings"]);
}

/** @param {any} slot @returns {Check | null} */
function groupsOfSlotCheck(slot) {
  return nobodyCheck(slot.onlyForGroups, changeHelp(slot));
}

/** Say which groups nobody has. @param {string[]} groups @param {[string, string]} help @returns {Check | null} */
function nobodyCheck(groups, help) {
  const names = groupsOfNobody(groups);
  return names.length ? check("bad", t("check.groupsOfNobody", { count: names.length, groups: names.join(", ") }), help) : null;
}

/** @param {any} found @returns {Check[]} */
function roomChecks({ resourceConflicts, resourceConflictCount: count }) {
  const shown = resourceConflicts.filter((/** @type {any} */ each) => each.slot);
  const checks = shown.map((/** @type {any} */ { resource, slot, other }) => check(
    "bad",
    t("check.roomTaken", { title: slot.title, resource, time: whenOf(slot.startTime, slot.timeZone), other: other?.title ?? "" }),
    changeHelp(slot),
  ));
  return count > checks.length ? [...checks, check("bad", t("check.moreRooms", { count: count - checks.length }))] : checks;
}

/** @param {any} found @returns {Check | null} */
function pastCheck({ pastSlots: { count, examples } }) {
  return count ? check("late", t("check.past", { count }), changeHelp(examples[0])) : null;
}

/** Before the campaign is published, its drafts are published with it. @param {any} campaign @param {any[]} slots @returns {Check | null} */
function draftsCheck(campaign, slots) {
  const drafts = slots.filter((slot) => slot.status === "DRAFT");
  const count = courseCount(drafts);
  if (!count) return null;
  if (campaign.published) return check("late", t("check.drafts", { count }), [t("plan.publishDrafts", { count }), "publishDrafts"]);
  const text = t("check.draftsToo", { count });
  return drafts.length < slots.length ? check("good", text, [t("plan.publishOthers"), "publishOthers"]) : check("good", text);
}

/**
 * Before the opening, most people should have a password.
 * @param {string} id of the campaign @param {any} found @param {string} zone @param {boolean} isOpen @returns {Check | null}
 */
function passwordCheck(id, found, zone, isOpen) {
  const { userCount, usersWithoutPassword: { count }, usersWithoutInvitation: { count: uninvited }, lastInvitedAt } = found;
  if (!userCount) return null;
  if (!count) return check("good", t("check.passwords"));
  const text = sentences([
    t("check.withPassword", { count: userCount - count, people: t("people.count", { count: userCount, shown: number(userCount) }) }),
    count > uninvited && t("check.invited", { count: count - uninvited, time: whenOf(lastInvitedAt, zone) }),
    uninvited > 0 && t("check.uninvited", { count: uninvited }),
  ]);
  /** @type {[string, string]} */
  const see = [t("check.seeWho"), `#/people/without-password/${id}`];
  const areFew = !isOpen && userCount - count < ENOUGH_PASSWORDS * userCount;
  const help = t(uninvited ? "check.invite" : "check.remind");
  return uninvited || areFew ? check("late", text, [help, `#/people/invitations/${id}`], see) : check("good", text, see);
}
