// @ts-check
/** What all views need of the page: the site, its addresses, and what it says to screen readers. */
import { tab } from "./storage.js";

/** The site: its name, its links, what it allows, as the page says it. @type {any} */
export const site = { name: "slotlock", ...JSON.parse(document.querySelector("meta[name=board-site]")?.getAttribute("content") ?? "{}") };

/** Where to go on after signing in, in the storage of the tab. */
export const BACK = "slotlock.back";
/** What a provider sent back with the user. */
export const returned = new URLSearchParams(location.search);

/** Go to another view. @param {string} address as "#/week" */
export function go(address) {
  location.hash = address;
}

/** What is said takes this time; so long after it the region is empty, as what it says may not be true any more. */
const SAYING_MS = 2000;
const STALE_MS = 10_000;
/** What to say to screen readers, at most once in two seconds, in the order of events. @type {Array<{text: string, about: string}>} */
let sayings = [];
let isSaying = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let emptying;

/** Say something, instead of what was not said yet about the same. @param {string} text @param {string} [about] the id of a slot */
export function say(text, about = "") {
  sayings = [...sayings.filter((each) => !about || each.about !== about), { text, about }];
  if (isSaying) return;
  isSaying = true;
  const show = (/** @type {string} */ said) => {
    const status = document.getElementById("status");
    if (status) status.textContent = said;
  };
  const next = () => {
    const said = sayings.shift();
    isSaying = said !== undefined;
    if (said === undefined) return;
    show(said.text);
    clearTimeout(emptying);
    emptying = setTimeout(() => show(""), STALE_MS);
    setTimeout(next, SAYING_MS);
  };
  setTimeout(next, 100);
}

/** Sign in, and come back. */
export function signInFirst() {
  tab.set(BACK, location.hash);
  go("#/signin");
}
