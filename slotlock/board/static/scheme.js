// @ts-check
/** Light or dark, and the site's own color, as far as it can be read in both. */
import { local } from "./storage.js";

const STORED_SCHEME = "slotlock.scheme";
export const SCHEMES = ["system", "light", "dark"];
/** The lowest contrast of a text (WCAG AA), on the wash of its own color. */
const CONTRAST = 4.5;
const WHITE = [255, 255, 255];
const BLACK = [0, 0, 0];
/** The sheet of the dark scheme. */
const NIGHT = [24, 27, 38];

/** Return what the person chose; by default the page follows the system. */
export function scheme() {
  const stored = local.get(STORED_SCHEME) ?? "";
  return SCHEMES.includes(stored) ? stored : "system";
}

/** Choose a scheme, or show the one chosen before. @param {string} [chosen] */
export function showScheme(chosen) {
  if (chosen) local.set(STORED_SCHEME, chosen);
  if (scheme() === "system") document.documentElement.removeAttribute("data-scheme");
  else document.documentElement.setAttribute("data-scheme", scheme());
}

/** Use the color of the site. @param {string | null | undefined} color as #2a3bb7 */
export function showColor(color) {
  if (!color || !/^#[0-9a-f]{6}$/i.test(color)) return;
  const own = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  const [day, dayWash] = readable(own, BLACK, WHITE);
  const [night, nightWash] = readable(own, WHITE, NIGHT);
  const panel = until(own, BLACK, (each) => contrast(each, WHITE) >= CONTRAST);
  const { style } = document.documentElement;
  const values = {
    day, "day-press": mix(day, BLACK, 0.25), "day-wash": dayWash,
    night, "night-press": mix(night, WHITE, 0.35), "night-wash": nightWash, "on-night": mix(own, BLACK, 0.75),
    panel, "panel-line": mix(panel, WHITE, 0.3), "panel-soft": mix(panel, WHITE, 0.85), "night-panel": mix(panel, BLACK, 0.45),
  };
  for (const [name, value] of Object.entries(values)) style.setProperty(`--site-${name}`, `rgb(${value.map(Math.round).join(", ")})`);
}

/** Return a color that can be read on its own wash over a ground, and that wash. @param {number[]} own @param {number[]} towards @param {number[]} ground */
function readable(own, towards, ground) {
  const wash = (/** @type {number[]} */ each) => mix(ground, each, 0.12);
  const color = until(own, towards, (each) => contrast(each, wash(each)) >= CONTRAST);
  return [color, wash(color)];
}

/** @param {number[]} color @param {number[]} towards @param {(color: number[]) => boolean} isEnough */
function until(color, towards, isEnough) {
  let share = 0;
  while (share < 1 && !isEnough(mix(color, towards, share))) share += 0.05;
  return mix(color, towards, Math.min(share, 1));
}

/** @param {number[]} color @param {number[]} other @param {number} share of the other */
function mix(color, other, share) {
  return color.map((each, index) => each + (other[index] - each) * share);
}

/** Return the contrast of two colors, 1 to 21 (WCAG 2.2). @param {number[]} one @param {number[]} other */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** @param {number[]} color */
function luminance(color) {
  const [red, green, blue] = color.map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
