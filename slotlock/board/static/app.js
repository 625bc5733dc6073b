// @ts-check
/** The frame of the page, and which view it shows: `#/week` shows views/week.js. */
import { drawWith, h, patch, redraw } from "./kernel.js";
import { adopt, goOn, hasSession, isEnding, me, newcomer, onSession, resumeSession, run, storeUser } from "./client.js";
import { button, failure, icon, mark, notice } from "./parts.js";
import { hideNews, newsPanel, unread } from "./news.js";
import { returned, signInFirst, site } from "./page.js";
import { children, invitations, leads, others, shows } from "./people.js";
import { showScheme } from "./scheme.js";
import { language, loadLaterTexts, loadTexts, loadTextsOfOrganizers, periods, t } from "./text.js";
import { onConnection } from "./socket.js";
import { tab } from "./storage.js";
import { openCampaigns } from "./views/campaigns.js";
import { openInvitation, openReset } from "./views/invitation.js";
import { openSignIn } from "./views/signin.js";
import { openSignOn } from "./views/signon.js";
import { openSlot } from "./views/slot.js";
import { openSlots } from "./views/slots.js";
import { openWeek } from "./views/week.js";

/**
 * A view: what `main` contains, and what to do when it begins and ends.
 * @typedef {{title: () => string, width?: "" | "wide" | "narrow" | "split", render: () => any[], leave?: () => void}} View
 */

/** The views by their first part of the address. @type {Record<string, (part: string) => View>} */
const VIEWS = {
  "": openCampaigns,
  campaign: openSlots,
  slot: openSlot,
  week: openWeek,
  signin: openSignIn,
  signon: openSignOn,
  invitation: openInvitation,
  code: openInvitation,
  reset: openReset,
};
/** Those that are files of their own, which no first visit needs. @type {Record<string, () => Promise<(part: string) => View>>} */
const LATER = {
  account: () => import("./views/account.js").then(({ openAccount }) => openAccount),
  wishes: () => import("./views/wishes.js").then(({ openWishes }) => openWishes),
};
/** Those for organizers, which come with their texts when one is asked for. */
const FOR_ORGANIZERS = ["organizer", "plan", "course", "draw", "monitor", "door", "people", "webhooks", "mail", "school", "led"];

/** The address loses what a provider sent back, as its code is a secret. */
const isReturned = returned.has("state") || returned.has("error");
if (isReturned) history.replaceState(null, "", `${location.pathname}#/signon`);

const VERSION = document.querySelector("meta[name=board-version]")?.getAttribute("content") ?? "";
/** A network that hangs must not keep the page empty. */
const FIRST_WAIT_MS = 4000;
const WORKER_AFTER_MS = 5000;
const MAX_TRAIL = 20;

/** @type {View | null} */
let view = null;
let shownAddress = "";
/** The id of the user whom it is shown to. @type {string | undefined} */
let shownTo;
/** Whether a view can write anything yet. */
let hasTexts = false;
/** Whether the view stands for one that only organizers see. */
let isBarred = false;
/** An error of the page itself, with the id by which somebody can ask about it. */
let brokenId = "";

function isOrganizer() {
  return me?.role === "ORGANIZER" || me?.role === "ADMIN";
}

/** Say for whom a view is. @returns {View} */
function barred() {
  const render = () => [
    h("h1", null, t("tab.organizer")),
    notice(me ? "stop" : "", me ? "lock" : "person", t("tab.onlyOrganizers"), !me && button("", t("tab.signin"), signInFirst)),
  ];
  return { title: () => t("tab.organizer"), render };
}

/** Say that an address leads nowhere. @returns {View} */
function nowhere() {
  return { title: () => t("nav"), render: () => [failure("CAMPAIGN_NOT_FOUND", show)] };
}

/** Return the address of the view, its name, and the part that it shows. Programs add signs to links, and escape others, also twice. */
function addressed() {
  const [address] = /** @type {RegExpExecArray} */ (/^[\w/-]*/.exec(
    location.hash
      .replace(/%(25)*(?=[0-7][\da-f])/gi, "%")
      .replace(/%[0-7][\da-f]/gi, decodeURIComponent)
      .replace(/^\W+/, ""),
  ));
  const [name = "", ...rest] = address.split("/").filter(Boolean);
  return { address, name, part: rest.join("/") };
}

/** Return the function that opens a view. @param {string} name @returns {Promise<(part: string) => View>} */
async function load(name) {
  if (children().length) await loadTogether();
  if (Object.hasOwn(LATER, name)) return (await Promise.all([LATER[name](), loadLaterTexts()]))[0];
  if (!FOR_ORGANIZERS.includes(name)) return Object.hasOwn(VIEWS, name) ? VIEWS[name] : nowhere;
  const [{ views }] = await Promise.all([import("./views/organizer.js"), loadTextsOfOrganizers()]);
  return views[name];
}

/** Show the view of the address, if the person may see it. */
async function show() {
  const { address, name, part } = addressed();
  // The server says who leads a course, and opens its door.
  const isForOthers = FOR_ORGANIZERS.includes(name) && !isOrganizer() && !(hasSession() && (!me || /^(led|door\/.)/.test(address)));
  const isOfOther = shownTo && shownTo !== me?.id;
  if (address === shownAddress && isForOthers === isBarred && view && !isOfOther) return void (shownTo ??= me?.id);
  shownTo = undefined;
  shownAddress = address;
  isBarred = isForOthers;
  try {
    const open = isForOthers ? barred : await load(name).catch(missing);
    const before = location.hash;
    const opened = open(part);
    if (address !== shownAddress || isForOthers !== isBarred) {
      opened.leave?.();
      return; // somebody went on meanwhile
    }
    // A secret leaves the address.
    if (location.hash !== before) {
      shownAddress = addressed().address;
      last(trail).address = location.hash;
    }
    view?.leave?.();
    view = opened;
    shownTo = me?.id;
    brokenId = "";
    scrollTo(0, 0);
    redraw();
    requestAnimationFrame(() => document.getElementById("main")?.focus({ preventScroll: true }));
  } catch (error) {
    report(error);
  }
}

/** In the storage of the tab, for a page that is loaded again. */
const STORED_TRAIL = "slotlock.trail";
/** The addresses that led here, each with how far it was scrolled. @type {Array<{address: string, y: number}>} */
const trail = tab.read(STORED_TRAIL, (kept) => last(kept).address === location.hash && kept.every((/** @type {any} */ each) => each.y >= 0) && kept)
  ?? [{ address: location.hash, y: 0 }];
/** How far to scroll once the page is long enough, unless the person does something before. */
let wantedY = last(trail).y;
addEventListener("pagehide", () => {
  last(trail).y = scrollY;
  tab.set(STORED_TRAIL, JSON.stringify(trail.slice(-MAX_TRAIL)));
});

/** @template T @param {T[]} all @returns {T} */
function last(all) {
  return all[all.length - 1];
}

/** Note where somebody goes on, or back to. */
function noteStep() {
  last(trail).y = scrollY;
  if (trail[trail.length - 2]?.address === location.hash) trail.pop();
  else trail.push({ address: location.hash, y: 0 });
  wantedY = last(trail).y;
}

function scrollBack() {
  if (wantedY) scrollTo(0, wantedY);
  if (scrollY >= wantedY - 1) wantedY = 0;
}

/** Load the page anew for other files, or say that there is no network. @param {unknown} error @returns {Promise<() => View>} */
async function missing(error) {
  const page = await fetch("/board", { cache: "no-cache" }).then((response) => response.text(), () => "");
  if (page.includes(VERSION)) throw error;
  if (page) import("./reload.js");
  return () => ({ title: () => t("nav"), render: () => [failure("OFFLINE", () => location.reload())] });
}

/** Open the view again, now that it shows what the children have. */
function showAnew() {
  if (!shownTo) return;
  shownTo = "nobody";
  show();
}

/** Load once what shows teams and several places, for parents with their children. */
function loadTogether() {
  const wanted = children().length ? "family" : "together";
  if (wanted === loadedFor) return loadingShown;
  loadedFor = wanted;
  /** @returns {Promise<any>} */
  const begin = () => (wanted === "family" ? import("./family.js").then(showAnew) : import("./together.js"));
  return (loadingShown = loadLaterTexts().then(begin).then(redraw, () => setTimeout(() => (loadedFor = ""), WORKER_AFTER_MS)));
}
let loadedFor = "";
/** @type {any} */
let loadingShown;
shows.load = loadTogether;
periods.load = () => site.periods && import("./periods.js").catch(() => null);

function drawPage() {
  if (!view || !hasTexts) return;
  if (others().length || invitations().length) loadTogether();
  const focused = document.activeElement;
  const places = ancestors(focused);
  document.title = [unread, view.title(), site.name].filter(Boolean).join(" · ");
  patch(document.body, [
    h("a", { class: "skip", href: "#main", onclick: skip }, t("skip")),
    bar(),
    whoGoesOn(),
    h("main", { id: "main", tabindex: -1, class: view.width ?? "" }, brokenId ? broken() : view.render()),
    newsPanel(),
    legal(),
    h("p", { id: "status", class: "vh", role: "status", "data-own": true }),
  ]);
  // What moves on the page loses the focus.
  if (focused?.isConnected) document.activeElement === focused || /** @type {HTMLElement} */ (focused).focus({ preventScroll: true });
  else if (focused) focusNear(places);
  scrollBack();
}

/** Say who is signed in here now, if that is not whom the page shows, and ask who goes on. */
function whoGoesOn() {
  const signIn = () => {
    adopt(null);
    signInFirst();
  };
  const ask = (/** @type {any[]} */ ...content) => h("div", { class: "notice wait asks", role: "alert", "data-key": "who" }, content);
  if (newcomer) return ask(
    icon("person"),
    h("p", null, t("who.new", newcomer), me && t("who.shown", me)),
    h("div", { class: "row" }, button("", t("who.goOn", newcomer), goOn), me && button("second", t("who.signIn"), signIn)),
  );
  return isEnding && ask(icon("warning"), h("p", null, t("who.isEnding")));
}

/** @param {Element | null} element @returns {Element[]} from its parent to the page */
function ancestors(element) {
  const all = [];
  for (let each = element?.parentElement; each; each = each.parentElement) all.push(each);
  return all;
}

/** Put the focus on what took the place of the element that had it, so that nobody starts over. @param {Element[]} places */
function focusNear(places) {
  if (document.activeElement && document.activeElement !== document.body) return;
  for (const place of places) {
    if (!place.isConnected || place === document.body) continue;
    const inside = place.id === "main" ? null : place.querySelector("button, a[href], input, select, textarea");
    const target = inside ?? (place.hasAttribute("tabindex") && place);
    if (target) return /** @type {HTMLElement} */ (target).focus({ preventScroll: true });
  }
}

function legal() {
  const links = [[site.imprintUrl, "legal.imprint"], [site.privacyUrl, "legal.privacy"], [!me && site.developersUrl, "legal.developers"]];
  return h("footer", { class: `legal ${view?.width ?? ""}` }, links.map(([address, key]) => address && h("a", { href: address }, t(key))));
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function bar() {
  return h(
    "header",
    { class: "bar" },
    h("a", { class: "brand", href: "#/" }, site.logoUrl ? h("img", { class: "logo", src: site.logoUrl, alt: "" }) : mark(), h("span", null, site.name)),
    h("nav", { class: "tabs", "aria-label": t("nav") }, tabLinks()),
    me && h("a", { class: "me", href: "#/account" }, icon("person"), me.name),
  );
}

function tabLinks() {
  // Nothing but the door is there to be pressed at the door.
  if (shownAddress.startsWith("door/")) return [h("a", { href: isOrganizer() ? "#/door" : "#/led" }, icon("tick"), t("door.done"))];
  const shown = shownAddress.split("/")[0];
  const all = [
    ["", "list", t("tab.courses"), ["campaign", "slot", "wishes"]],
    (me || hasSession()) && ["week", "week", t("tab.week"), []],
    isOrganizer() ? ["organizer", "gear", t("tab.organizer"), FOR_ORGANIZERS] : leads() && ["led", "list", t("tab.led"), []],
    me ? ["account", "person", t("tab.account"), []] : ["signin", "person", t("tab.signin"), []],
  ];
  return all.filter(Boolean).map((each) => {
    const [address, iconName, label, others] = /** @type {any[]} */ (each);
    const isCurrent = shown === address || others.includes(shown);
    return h("a", { href: `#/${address}`, "aria-current": isCurrent && "page" }, icon(iconName), label);
  });
}

function broken() {
  return failure("BROKEN", () => location.reload(), { id: brokenId });
}

/** Show that the page failed. @param {unknown} error */
function report(error) {
  console.error(error);
  if (!brokenId) {
    brokenId = Math.random().toString(16).slice(2, 10);
    const stack = error instanceof Error ? error.stack : "";
    const body = `${brokenId} in ${shownAddress.split("/")[0]}: ${error} ${stack}`.slice(0, 1500);
    if (site.logsErrors) fetch("/board/errors", { method: "POST", body }).catch(() => null);
  }
  if (view) redraw();
  else patch(document.body, [h("main", null, broken())]);
}

/** Load the texts; a user who never chose a language gets mails in that of their first page. */
async function useLanguage() {
  await loadTexts(me?.locale);
  if (!me || me.locale) return;
  me.locale = language;
  run("updateMe", { locale: language }).then(storeUser, () => null);
}

async function start() {
  drawWith(drawPage);
  showScheme();
  addEventListener("error", (event) => report(event.error));
  addEventListener("unhandledrejection", (event) => report(event.reason));
  addEventListener("hashchange", () => {
    noteStep();
    show();
  });
  for (const event of ["pointerdown", "wheel", "keydown"]) addEventListener(event, () => (wantedY = 0), { passive: true });
  onSession(redraw);
  onConnection(redraw);
  const resumed = resumeSession();
  const isKnown = me || !hasSession();
  // A view that asks for its list does so in the round trip of the texts. What a provider sent needs texts.
  if (isKnown && !isReturned) show();
  else load(addressed().name).catch(() => null);
  await Promise.all([loadTexts(), periods.load(), isKnown || Promise.race([resumed, new Promise((resolve) => setTimeout(resolve, FIRST_WAIT_MS))])]);
  await useLanguage();
  hasTexts = true;
  await show();
  redraw();
  onSession(() => useLanguage().then(redraw));
  onSession(show);
  onSession(() => me || hideNews());
  await resumed;
  registerWorker();
  onSession(registerWorker);
}

let isRegistered = false;
/** Let a worker keep the page for the door without a network, for people with bookings. */
function registerWorker() {
  if (isRegistered || !me || !navigator.serviceWorker) return;
  isRegistered = true;
  const address = "/board/worker.js";
  const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("slotlock", { createScriptURL: () => address });
  const register = () => navigator.serviceWorker.register(policy?.createScriptURL("") ?? address, { scope: "/board" }).catch(() => null);
  setTimeout(register, WORKER_AFTER_MS); // the page itself comes first, in a rush above all
}

start().catch(report);
