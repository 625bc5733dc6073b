// @ts-check
/** How full a course is, as organizers see it: a bar, which means the same as the bars of the chart. */
import { svg } from "../../kernel.js";

/** Return a bar that is as long as the share of places that are taken; a text beside it says how many. @param {number} taken @param {number} all */
export function level(taken, all) {
  const width = all ? (100 * Math.min(taken, all)) / all : 0;
  return svg("svg", { class: "level", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "all", width: 100, height: 10 }), svg("rect", { width, height: 10 }));
}
