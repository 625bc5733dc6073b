// @ts-check
/** What others did to one's places: shown until it is hidden, said once, and named in the title of the page. */
import { h, redraw } from "./kernel.js";
import { go, say } from "./page.js";
import { button, hidden, icon, notice } from "./parts.js";
import { placeIn, shows } from "./people.js";
import { asSentence, listOf, sentences, t, timeOf } from "./text.js";

const MAX_NEWS = 3;
/** How news look, by what happened. @type {Record<string, "yours" | "wait" | "stop">} */
const LOOKS = {
  BOOKED: "yours",
  PROMOTED: "yours",
  MOVED: "yours",
  OFFERED: "wait",
  SLOT_EDITED: "wait",
  led: "wait",
  CANCELLED: "stop",
  EXPIRED: "stop",
  SLOT_CANCELLED: "stop",
};
const NEWS_ICONS = { yours: "tick", wait: "clock", stop: "warning" };

/** So long a page is visible before its news are read: then its title is of the page again. */
const READ_MS = 5000;
/** The newest, until it is read: for the title of the page. */
export let unread = "";
/** @type {ReturnType<typeof setTimeout> | undefined} */
let reading;

/** Give the title back to the page. */
function forget() {
  unread = "";
  redraw();
}

/** Let the title go once the page was visible for a while. */
function readSoon() {
  clearTimeout(reading);
  if (!document.hidden) reading = setTimeout(forget, READ_MS);
}
document.addEventListener("visibilitychange", readSoon);

/** @typedef {{slot: any, person: any, look: "yours" | "wait" | "stop", text: string, free: string}} Item */
/** The newest is the first. @type {Item[]} */
let news = [];

/**
 * Tell what somebody else did to a place, or to a position in a line.
 * @param {any} event of `watchMyBookings` @param {import("./people.js").Person} [person] a child whose place it is
 */
export async function tellNews({ action, booking: { slot, heldUntil }, edits }, person) {
  const what = listOf([...new Set(edits.map((/** @type {any} */ { field }) => t(`news.edit.${field}`, {}, t("news.edit.time"))))]);
  const names = what === t("news.edit.staff") && edits[0].after;
  const own = names ? "led" : action === "WAITLIST_LEFT" ? "CANCELLED" : action;
  const kind = slot.status === "CANCELLED" ? "SLOT_CANCELLED" : own;
  if (!LOOKS[kind]) return;
  const values = { title: slot.title, time: heldUntil && timeOf(heldUntil, slot.timeZone), what, names };
  const title = person ? shows.said?.({ person }, kind, values) : t(`news.${kind}`, values);
  /** @type {Item} */
  const item = { slot, person, look: LOOKS[kind], text: title + (slot.cancelReason ? t("whose", { name: slot.cancelReason }) : ""), free: "" };
  news = [item, ...news.filter((each) => each.slot.id !== slot.id || each.person !== person)].slice(0, MAX_NEWS);
  unread = item.text;
  readSoon();
  redraw();
  if (kind === "SLOT_CANCELLED" && slot.campaign) item.free = await freeCourses(slot.campaign.id, person?.id).catch(() => "");
  say(item.free ? sentences([asSentence(item.text), item.free]) : item.text, slot.id);
  redraw();
}

/** Say how many courses of a campaign somebody could get now. @param {string} campaign @param {string} [child] the id of a child */
async function freeCourses(campaign, child) {
  const slots = await shows.read("slotsOfCampaign", { campaign }, "slots");
  const count = (slots ?? []).filter((each) => each.remaining > 0 && !placeIn(each, child).myEligibility?.refusal).length;
  return count ? t("news.free", { count }) : "";
}

/** Hide news. @param {Item} [item] or all */
export function hideNews(item) {
  news = news.filter((each) => item && each !== item);
  forget();
}

/** Return the news: below what is there, so that nothing moves under a thumb that books. */
export function newsPanel() {
  const row = (/** @type {Item} */ item) => {
    const hide = () => hideNews(item);
    const see = () => {
      hide();
      go(`#/campaign/${item.slot.campaign.id}/free`);
    };
    return notice(item.look, NEWS_ICONS[item.look], [h("a", { href: `#/slot/${item.slot.id}`, onclick: hide }, item.text), item.free && [h("br"), item.free]], [
      button("plain", [icon("cross"), hidden(t("news.hide"))], hide),
      item.free && button("second", t("news.see"), see),
    ]);
  };
  return news.length > 0 && h("aside", { class: "news", "data-key": "news" }, news.map(row));
}
