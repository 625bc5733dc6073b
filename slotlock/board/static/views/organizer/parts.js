// @ts-check
/** Parts that several views for organizers show: names, tables, how full a course is, the zone of its times, choices. */
import { h, redraw, svg } from "../../kernel.js";
import { button, field, notice } from "../../parts.js";
import { commas, compareNames, deviceZone, t, zoneText } from "../../text.js";

/** Return a name as lists show it: "Becker, Björn", if the family name is known. @param {any} user */
export function listName({ name, familyName }) {
  return familyName && name.endsWith(` ${familyName}`) ? `${familyName}, ${name.slice(0, -familyName.length - 1)}` : name;
}

/** Compare what has a user by family name, as sheets are sorted. @param {any} a @param {any} b */
export function byListName({ user: a }, { user: b }) {
  return compareNames(a ? listName(a) : "", b ? listName(b) : "");
}

/** Return a link to a person. @param {any} user @param {any} [text] */
export function userLink(user, text = user.name) {
  return h("a", { href: `#/people/${user.id}` }, text);
}

/** Return what an entry of a list is about: its name, and below it what else is known. @param {any} name @param {any[]} facts */
export function about(name, facts) {
  return h("p", null, name, h("br"), h("span", { class: "small soft" }, facts.filter(Boolean).join(" · ")));
}

/** Return a heading with a count. @param {string} text @param {string | null} count */
export function withCount(text, count) {
  return [text, " ", h("span", { class: "soft" }, count)];
}

/** Return a button that opens something and closes it again. @param {any} content @param {any} isOpen @param {() => void} onclick @param {string} [kind] */
export function toggleButton(content, isOpen, onclick, kind = "second") {
  return button(kind, content, onclick, { "aria-expanded": String(Boolean(isOpen)) });
}

/** Say which groups may be one. @param {string[][]} found */
export function similarGroups(found) {
  return found.map((each) => notice("", "warning", t("people.similarGroups", { groups: commas(each) })));
}

/** Return the head of a column. @param {any} content @param {string | null} [kind] */
export function column(content, kind = null) {
  return h("th", { role: "columnheader", scope: "col", class: kind }, content);
}

/** Return a number in a table, which names its column where rows are cards. @param {string} label @param {...any} content */
export function countCell(label, ...content) {
  return h("td", { role: "cell", class: "num", "data-label": label }, content);
}

/**
 * Return a table: its style takes the roles of its elements from them.
 * @param {Record<string, any>} name as an attribute of ARIA @param {any[]} columns @param {any} body
 */
export function table(name, columns, body) {
  return h(
    "div",
    { class: "frame" },
    h("table", { class: "table", role: "table", ...name }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns)), body),
  );
}

/**
 * Return a table of numbers.
 * @param {Record<string, any>} name as an attribute of ARIA
 * @param {string[]} columns their texts, first that of the heads
 * @param {Array<[string, any, ...any[]]>} rows each its key, its head and its numbers
 */
export function countTable(name, [first, ...others], rows) {
  return table(name, [column(first), others.map((each) => column(each, "num"))], h("tbody", { role: "rowgroup" }, rows.map(([key, head, ...counts]) =>
    h(
      "tr",
      { role: "row", "data-key": key },
      h("th", { role: "rowheader", scope: "row" }, head),
      counts.map((count, index) => countCell(others[index], count)),
    ))));
}

/** Return a bar that is as long as the share of places that are taken; a text beside it says how many. @param {number} taken @param {number} all */
export function level(taken, all) {
  const width = all ? (100 * Math.min(taken, all)) / all : 0;
  return svg(
    "svg",
    { class: "level", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "all", width: 100, height: 10 }),
    svg("rect", { width, height: 10 }),
  );
}

/** Name the zone of times, if it is not that of the device. @param {string} zone */
export function zoneNote(zone) {
  return zone !== deviceZone && h("p", { class: "soft" }, zoneText(zone));
}

/**
 * Return a choice of some values.
 * @param {string} id @param {string} label @param {Array<[string, string]>} options @param {string} chosen @param {(value: string) => any} onset
 */
export function choice(id, label, options, chosen, onset) {
  const children = options.map(([value, text]) => h("option", { value, selected: value === chosen }, text));
  const onchange = (/** @type {any} */ event) => {
    onset(event.target.value);
    redraw();
  };
  return field(id, label, { tag: "select", children, onchange });
}
