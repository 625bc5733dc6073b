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

/** Say something to screen readers, at most once in two seconds, in the order of events. @type {string[]} */
const sayings = [];
let isSaying = false;

/** @param {string} text */
export function say(text) {
  sayings.push(text);
  if (isSaying) return;
  isSaying = true;
  const next = () => {
    const said = sayings.shift();
    isSaying = said !== undefined;
    if (said === undefined) return;
    const status = document.getElementById("status");
    if (status) status.textContent = said;
    setTimeout(next, 2000);
  };
  setTimeout(next, 100);
}

/** Sign in, and come back. */
export function signInFirst() {
  tab.set(BACK, location.hash);
  go("#/signin");
}
