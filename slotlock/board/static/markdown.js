// @ts-check
/**
 * A small part of Markdown as elements: paragraphs, lists, **strong**, *emphasis*, and links to
 * https. All else stays the text that it is, HTML as well.
 */
import { h } from "./kernel.js";

const ITEM = /^\s*(?:[-*+]|(\d{1,3})[.)])\s+(.*)$/;
const HEADING = /^#{1,6}\s+(.*?)\s*#*$/;
// Bounded, as a text without an end would be searched from each beginning.
const INLINE = /\*\*(?!\s)(.{1,300}?)\*\*(?!\*)|__(?!\s)(.{1,300}?)__|\*(?!\s)(.{1,300}?)\*|(^|[^\p{L}\p{N}_])_(?![\s_])(.{1,300}?)_(?![\p{L}\p{N}])|\[([^\]]{1,300})\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)|(https:\/\/[^\s<>*]+[^\s<>*.,;:!?)'"])/u;
/** How deep emphasis may be in emphasis. */
const MAX_DEPTH = 4;

/** Return the elements of a text. @param {string | null | undefined} text */
export function markdown(text) {
  return (text ?? "").replace(/\r\n?/g, "\n").split(/\n\s*\n/).flatMap(block);
}

/** @param {string} text of one block @returns {any[]} */
function block(text) {
  /** @type {any[]} */
  const elements = [];
  /** The lines of what is being read: a paragraph, or the items of a list. @type {string[]} */
  let lines = [];
  let kind = "p";
  const end = () => {
    if (!lines.length) return;
    if (kind === "p") elements.push(h("p", null, lines.flatMap((line, index) => (index ? [h("br"), ...inline(line)] : inline(line)))));
    else elements.push(h(kind, { class: "items" }, lines.map((line) => h("li", null, inline(line)))));
    lines = [];
  };
  for (const line of text.split("\n")) {
    const item = ITEM.exec(line);
    const heading = HEADING.exec(line);
    const wanted = item ? (item[1] ? "ol" : "ul") : "p";
    if (!item && kind !== "p" && lines.length && /^\s+\S/.test(line)) {
      lines[lines.length - 1] += ` ${line.trim()}`; // an item goes on
      continue;
    }
    if (wanted !== kind || heading) end();
    kind = wanted;
    if (heading) elements.push(h("p", null, h("strong", null, inline(heading[1]))));
    else if (line.trim()) lines.push(item ? item[2] : line.trim());
  }
  end();
  return elements;
}

/** @param {string} text @param {number} [depth] @returns {any[]} */
function inline(text, depth = 0) {
  /** @type {any[]} */
  const parts = [];
  let rest = text;
  for (let found; depth < MAX_DEPTH && (found = INLINE.exec(rest)); rest = rest.slice(found.index + found[0].length)) {
    const [all, strong, strongToo, emphasis, before, emphasisToo, label, address, plain] = found;
    let element = null;
    if (strong ?? strongToo) element = h("strong", null, inline(strong ?? strongToo, depth + 1));
    else if (emphasis ?? emphasisToo) element = h("em", null, inline(emphasis ?? emphasisToo, depth + 1));
    else element = link(address ?? plain, label ?? plain) ?? all;
    parts.push(rest.slice(0, found.index), before, element);
  }
  return [...parts, rest].filter(Boolean);
}

/** @param {string} address @param {string} label */
function link(address, label) {
  try {
    const { protocol, href } = new URL(address);
    return protocol === "https:" ? h("a", { href, rel: "noopener noreferrer" }, label) : null;
  } catch {
    return null;
  }
}
