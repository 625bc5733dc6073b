// @ts-check
/** What stands in the way of a campaign before it opens, each with what helps, and what is left to do while it is open. */
import { now } from "../../clock.js";
import { run } from "../../client.js";
import { number, t } from "../../text.js";
import { whenOf } from "./forms/localtime.js";

/**
 * What helps: something that the page does, or another page.
 * @typedef {{does?: "add" | "publishDrafts" | "publishOthers" | "settings", href?: string, label: string}} Help
 * A check: whether it is good, a warning or a problem, and what helps.
 * @typedef {{kind: "good" | "late" | "bad", text: string, helps?: Help[]}} Check
 */

/**
 * Return all checks of a campaign, in order. Once everybody can book, its places and times are no task any more.
 * @param {any} campaign
 * @param {any[]} slots that are not canceled
 * @param {string} zone
 * @returns {Promise<Check[]>}
 */
export async function readChecks(campaign, slots, zone) {
  const found = (await run("campaignReadiness", { id: campaign.id })).campaignReadiness;
  if (!found) return [];
  const isOpen = campaign.published && Date.parse(campaign.opensAt) <= now();
  if (isOpen && Date.parse(campaign.closesAt) <= now()) return [];
  const before = isOpen ? [] : [placesCheck(slots, found), tooFewCheck(campaign, found), opensCheck(campaign, zone), pastCheck(found)];
  return [...before, ...roomChecks(found), draftsCheck(campaign, slots), passwordCheck(found, zone)].filter((each) => each !== null);
}

/** Return how many courses there are: the dates of a series are one. @param {any[]} slots */
export function courseCount(slots) {
  return new Set(slots.map((slot) => slot.seriesId ?? slot.id)).size;
}

/** @returns {Help} */
function addHelp() {
  return { does: "add", label: t("plan.add") };
}

/** @param {any[]} slots @param {any} found @returns {Check} */
function placesCheck(slots, { places, userCount }) {
  if (!slots.length) return { kind: "bad", text: t("check.noSlots"), helps: [addHelp()] };
  if (!userCount) return { kind: "late", text: t("check.nobody"), helps: [{ href: "#/people", label: t("people.title") }] };
  const text = t("check.places", { courses: t("orga.courses", { count: courseCount(slots) }), places: t("check.placeCount", { count: places }), count: userCount });
  return userCount > places ? { kind: "late", text: t("check.tooFew", { text, count: userCount - places }), helps: [addHelp()] } : { kind: "good", text };
}

/** @param {any} campaign @param {any} found @returns {Check | null} */
function tooFewCheck(campaign, { bookableSlots, usersWithTooFewSlots: { count } }) {
  if (!count || !bookableSlots) return null;
  const text = [t("check.mayChoose", { count: campaign.maxBookings, people: t("check.people", { count, shown: number(count) }) }), t("check.canChoose", { count: bookableSlots })];
  return { kind: "late", text: text.join(" "), helps: [addHelp(), { does: "settings", label: t("check.changePlaces") }] };
}

/** @param {any} campaign @param {string} zone @returns {Check} */
function opensCheck(campaign, zone) {
  const settings = { helps: [/** @type {Help} */ ({ does: "settings", label: t("check.changeTimes") })] };
  if (Date.parse(campaign.closesAt) <= now()) return { kind: "bad", text: t("check.closed", { time: whenOf(campaign.closesAt, zone) }), ...settings };
  if (Date.parse(campaign.opensAt) <= now()) return { kind: "late", text: t("check.opensAtOnce", { time: whenOf(campaign.opensAt, zone) }), ...settings };
  return { kind: "good", text: t("orga.times", { opens: whenOf(campaign.opensAt, zone), closes: whenOf(campaign.closesAt, zone) }) };
}

/** @param {any} found @returns {Check[]} */
function roomChecks({ resourceConflicts, resourceConflictCount: count }) {
  const shown = resourceConflicts.filter((/** @type {any} */ each) => each.slot);
  const checks = shown.map((/** @type {any} */ { resource, slot, other }) => ({
    kind: "bad",
    text: t("check.roomTaken", { title: slot.title, resource, time: whenOf(slot.startTime, slot.timeZone), other: other?.title ?? "" }),
    helps: [{ href: `#/course/${slot.id}/edit`, label: t("check.change", { title: slot.title }) }],
  }));
  return count > checks.length ? [...checks, { kind: "bad", text: t("check.moreRooms", { count: count - checks.length }) }] : checks;
}

/** @param {any} found @returns {Check | null} */
function pastCheck({ pastSlots: { count, examples } }) {
  if (!count) return null;
  return { kind: "late", text: t("check.past", { count }), helps: [{ href: `#/course/${examples[0].id}/edit`, label: t("check.change", { title: examples[0].title }) }] };
}

/** Before the campaign is published, its drafts are published with it. @param {any} campaign @param {any[]} slots @returns {Check | null} */
function draftsCheck(campaign, slots) {
  const drafts = slots.filter((slot) => slot.status === "DRAFT");
  const count = courseCount(drafts);
  if (!count) return null;
  if (campaign.published) return { kind: "late", text: t("check.drafts", { count }), helps: [{ does: "publishDrafts", label: t("plan.publishDrafts", { count }) }] };
  const helps = drafts.length < slots.length ? [/** @type {Help} */ ({ does: "publishOthers", label: t("plan.publishOthers") })] : [];
  return { kind: "good", text: t("check.draftsToo", { count }), helps };
}

/** @param {any} found @param {string} zone @returns {Check | null} */
function passwordCheck({ userCount, usersWithoutPassword: { count }, usersWithoutInvitation: { count: uninvited }, lastInvitedAt }, zone) {
  if (!userCount) return null;
  if (!count) return { kind: "good", text: t("check.passwords") };
  const text = [
    t("check.withPassword", { count: userCount - count, people: t("check.people", { count: userCount, shown: number(userCount) }) }),
    count > uninvited && t("check.invited", { count: count - uninvited, time: whenOf(lastInvitedAt, zone) }),
    uninvited > 0 && t("check.uninvited", { count: uninvited }),
  ];
  const see = { href: "#/people/without-password", label: t("check.seeWho") };
  return { kind: uninvited ? "late" : "good", text: text.filter(Boolean).join(" "), helps: uninvited ? [{ href: "#/people/invitations", label: t("check.invite") }, see] : [see] };
}
