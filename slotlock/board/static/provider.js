// @ts-check
/** The providers of the school: the way to one of them, and what this tab remembers of it. */
import { reason } from "./bookings.js";
import { newKey, resultOf } from "./client.js";
import { site } from "./page.js";
import { tab } from "./storage.js";
import { t } from "./text.js";

/** What this tab remembers of each sign-in that it started, by the state. */
const PENDING = "slotlock.signIn.";

/**
 * Go to a provider. Only this tab has the verifier, so that no other browser can finish the sign-in.
 * @param {string} provider
 * @param {string} [userId] of the user whose account it is linked to
 * @returns {Promise<string>} what went wrong
 */
export async function begin(provider, userId) {
  const verifier = newKey() + newKey();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const challenge = btoa(String.fromCharCode(...hash)).replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
  const result = await resultOf("startSignIn", { provider, challenge });
  if (result.code) return reason(result);
  tab.set(PENDING + result.state, JSON.stringify({ verifier, provider, userId }));
  location.assign(result.url);
  return "";
}

/**
 * Take what this tab remembers of a sign-in, which another page must not use again.
 * @param {string | null} state
 * @returns {{verifier: string, provider: string, userId?: string} | null}
 */
export function takeBegun(state) {
  const begun = tab.read(PENDING + state, (kept) => kept.verifier && kept);
  tab.remove(PENDING + state);
  return begun;
}

/** Return the name of a provider. @param {string | null} id */
export function providerName(id) {
  return site.signInProviders.find((/** @type {any} */ each) => each.id === id)?.name ?? t("account.formerProvider");
}
