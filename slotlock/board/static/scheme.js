// @ts-check
/** Light or dark. */
import { local } from "./storage.js";

const STORED_SCHEME = "slotlock.scheme";
export const SCHEMES = ["system", "light", "dark"];

/** Return what the person chose; by default the page follows the system. */
export function scheme() {
  return local.get(STORED_SCHEME) ?? "system";
}

/** Choose a scheme, or show the one chosen before. @param {string} [chosen] */
export function showScheme(chosen) {
  if (chosen) local.set(STORED_SCHEME, chosen);
  document.documentElement.dataset.scheme = scheme();
}
