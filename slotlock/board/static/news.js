// @ts-check
/** What others did to one's places: shown until it is hidden, said once, and named in the title of the page. */
import { h, redraw } from "./kernel.js";
import { go, say } from "./page.js";
import { button, notice } from "./parts.js";
import { readAll } from "./store.js";
import { t, timeOf } from "./text.js";

const MAX_NEWS = 3;
/** How news look, by what happened. @type {Record<string, ["" | "wait" | "stop" | "yours", string]>} */
const LOOKS = {
  BOOKED: ["yours", "tick"],
  PROMOTED: ["yours", "tick"],
  OFFERED: ["wait", "clock"],
  MOVED: ["yours", "swap"],
  SLOT_EDITED: ["wait", "clock"],
  CANCELLED: ["stop", "warning"],
  SLOT_CANCELLED: ["stop", "warning"],
};

/** @typedef {{slot: any, kind: string, time?: string, free?: number}} Item */
/** The newest is the first. @type {Item[]} */
let news = [];

/** Tell what somebody else did to a place, or to a position in a line. @param {any} event of `watchMyBookings` */
export async function tellNews({ action, booking: { slot, heldUntil } }) {
  const own = action === "WAITLIST_LEFT" ? "CANCELLED" : action;
  const kind = slot.status === "CANCELLED" ? "SLOT_CANCELLED" : own;
  if (!LOOKS[kind]) return;
  /** @type {Item} */
  const item = { slot, kind, time: heldUntil && timeOf(heldUntil, slot.timeZone) };
  news = [item, ...news.filter((each) => each.slot.id !== slot.id)].slice(0, MAX_NEWS);
  redraw();
  if (kind === "SLOT_CANCELLED" && slot.campaign) item.free = await countFree(slot.campaign.id).catch(() => 0);
  say([textOf(item), freeOf(item)].filter(Boolean).join(". "), slot.id);
  redraw();
}

/** Return how many courses of a campaign one could book now. @param {string} campaign */
async function countFree(campaign) {
  const slots = await readAll("slotsOfCampaign", { campaign }, "slots");
  return (slots ?? []).filter((each) => each.remaining > 0 && !each.myEligibility?.refusal).length;
}

/** @param {Item} item */
function textOf({ slot, kind, time }) {
  const text = t(`news.${kind}`, { title: slot.title, time });
  return slot.cancelReason ? text + t("whose", { name: slot.cancelReason }) : text;
}

/** @param {Item} item */
function freeOf({ free }) {
  return free ? t("news.free", { count: free }) : "";
}

/** Hide news. @param {Item} [item] or all */
export function hideNews(item) {
  news = item ? news.filter((each) => each !== item) : [];
  redraw();
}

/** Return the newest, for the title of the page. */
export function newestNews() {
  return news[0] && textOf(news[0]);
}

/** Return the news: below what is there, so that nothing moves under a thumb that books. */
export function newsPanel() {
  const row = (/** @type {Item} */ item) => {
    const [look, iconName] = LOOKS[item.kind];
    const see = () => {
      hideNews(item);
      go(`#/campaign/${item.slot.campaign.id}/free`);
    };
    const text = [h("a", { href: `#/slot/${item.slot.id}` }, textOf(item)), item.free && [h("br"), freeOf(item)]];
    const actions = [item.free && button("second", t("news.see"), see), button("plain", t("news.hide"), () => hideNews(item))];
    return notice(look, iconName, text, actions);
  };
  return news.length > 0 && h("section", { class: "news", "data-key": "news", "aria-label": t("news.title") }, news.map(row));
}
