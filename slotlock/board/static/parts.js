// @ts-check
/** Parts that several views show: icons, the dashes of places, notices, fields. */
import { lostAt, me } from "./client.js";
import { h, redraw, svg } from "./kernel.js";
import { signInFirst } from "./page.js";
import { isConnecting } from "./socket.js";
import { LANGUAGES, chooseLanguage, deviceZone, errorText, language, schoolZone, t, timeOf, zoneText } from "./text.js";

/** @type {Record<string, string>} Paths of 24 x 24. */
const ICONS = {
  cross: "m6.5 6.5 11 11M17.5 6.5l-11 11",
  undo: "M8.5 5 4.5 9l4 4M4.5 9H14a5 5 0 0 1 0 10h-3",
  list: "M9 6.5h11M9 12h11M9 17.5h11M4 6.5h.01M4 12h.01M4 17.5h.01",
  week: "M6.5 5.5h11A2.5 2.5 0 0 1 20 8v9.5a2.5 2.5 0 0 1-2.5 2.5h-11A2.5 2.5 0 0 1 4 17.5V8a2.5 2.5 0 0 1 2.5-2.5zM4 10.5h16M8.5 3.5v4M15.5 3.5v4",
  person: "M12 4.75a3.75 3.75 0 1 1 0 7.5 3.75 3.75 0 0 1 0-7.5zM5 20c.8-3.8 3.4-5.75 7-5.75s6.2 1.95 7 5.75",
  tick: "m5 12.5 4.5 4.5L19 7.5",
  code: "M4.5 4.5h5v5h-5zM14.5 4.5h5v5h-5zM4.5 14.5h5v5h-5zM14.5 14.5h2v2M19.5 14.5v5h-5",
  overlap: "M6 4h6.5a2 2 0 0 1 2 2v6.5a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2zM17.5 9.5H18a2 2 0 0 1 2 2V18a2 2 0 0 1-2 2h-6.5a2 2 0 0 1-2-2v-.5",
  swap: "M4.5 9h14l-3.5-3.5M19.5 15h-14l3.5 3.5",
  lock: "M7.5 10.5h9a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2h-9a2 2 0 0 1-2-2v-5a2 2 0 0 1 2-2zM8.5 10.5V8a3.5 3.5 0 0 1 7 0v2.5",
  people: "M6 5.75a2.25 2.25 0 1 1 0 4.5 2.25 2.25 0 0 1 0-4.5zM12.5 5.75a2.25 2.25 0 1 1 0 4.5 2.25 2.25 0 0 1 0-4.5zM19 5.75a2.25 2.25 0 1 1 0 4.5 2.25 2.25 0 0 1 0-4.5zM3 17.5c.4-2.6 1.5-4 3-4s2.6 1.4 3 4M9.5 17.5c.4-2.6 1.5-4 3-4s2.6 1.4 3 4M16 17.5c.4-2.6 1.5-4 3-4 1 0 1.8.6 2.4 1.6",
  clock: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 7.5V12l3 2",
  warning: "M12 4.5 3.5 19.5h17zM12 10v4.5M12 17.2h.01",
  school: "M3 9.5 12 5l9 4.5-9 4.5zM7 12v4.5c1.3 1.3 3 2 5 2s3.7-.7 5-2V12",
  star: "m12 4 2.5 5.1 5.6.8-4.05 3.95.95 5.6L12 16.8l-5 2.65.95-5.6L3.9 9.9l5.6-.8z",
  gear: "M12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM12 3.5v2.5M12 18v2.5M3.5 12H6M18 12h2.5M6 6l1.8 1.8M16.2 16.2 18 18M18 6l-1.8 1.8M7.8 16.2 6 18",
};

/** Return an icon, which is decoration: a text says the same. @param {string} name @param {string} [extra] */
export function icon(name, extra = "") {
  const path = svg("path", { d: ICONS[name] });
  return svg("svg", { class: `icon ${extra}`, viewBox: "0 0 24 24", "aria-hidden": "true" }, path);
}

/** Return the logo. */
export function mark() {
  return svg(
    "svg",
    { class: "mark", viewBox: "0 0 28 28", "aria-hidden": "true" },
    svg("rect", { width: 28, height: 28, rx: 7 }),
    svg("path", { d: "M14 7v14" }),
    svg("path", { d: "M8 7v14M20 7v14" }),
  );
}

/**
 * Return a dash for each of some places or seconds, and over them those from one to another in the color of their class.
 * @param {Record<string, any>} attributes @param {number} all @param {string} kind @param {number} from @param {number} to
 */
export function dashes(attributes, all, kind, from, to) {
  return svg(
    "svg",
    { viewBox: "0 -5 100 10", preserveAspectRatio: "none", "aria-hidden": "true", ...attributes },
    svg("line", { x2: 100, pathLength: all }),
    to > from && svg("line", { class: kind, x1: (100 * from) / all, x2: (100 * to) / all, pathLength: to - from }),
  );
}

/**
 * Return a dash for each place: the free ones, or one's own, in the color of their class.
 * @param {number} all @param {number} some @param {"free" | "mine"} kind
 */
export function places(all, some, kind) {
  const count = Math.max(all, 1);
  return dashes({ class: "places", width: Math.min(count * 8, 240), height: 12 }, count, kind, 0, Math.min(some, count));
}

/** Return a text that only screen readers have. @param {string} text */
export function hidden(text) {
  return h("span", { class: "vh" }, text);
}

/** Return what a control acts on, which only its name says: "Book: Chess". @param {string} name */
export function whose(name) {
  return hidden(t("whose", { name }));
}

/**
 * Return a notice in the flow of a page, with at most one action.
 * @param {"" | "wait" | "stop" | "yours"} kind
 * @param {string} iconName
 * @param {any} content
 * @param {any} [action]
 */
export function notice(kind, iconName, content, action) {
  return h("div", { class: `notice ${kind}` }, icon(iconName), h("p", null, content), action);
}

/**
 * Return a field with its label and its error.
 * @param {string} id
 * @param {string} label
 * @param {Record<string, any>} attributes of the input
 * @param {string} [error]
 * @param {string} [help] what to know before typing
 */
export function field(id, label, attributes, error, help) {
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ");
  const wrong = { "aria-invalid": error ? "true" : null, "aria-describedby": described || null };
  const { tag = "input", children = [], ...others } = attributes;
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h(tag, { class: "input", id, name: id, ...others, ...wrong }, ...children),
    help && h("p", { class: "soft", id: `${id}-help` }, help),
    error && h("p", { class: "error", id: `${id}-error` }, icon("warning"), h("span", null, error)),
  );
}

/** Return what a password manager needs beside a new password: for whom it is. @param {string | null | undefined} name an address or a user name */
export function usernameField(name) {
  return h("input", { class: "vh", type: "text", autocomplete: "username", value: name ?? "", tabindex: -1, "aria-hidden": "true", readonly: true });
}

/**
 * Return a section with its heading.
 * @param {string} id
 * @param {any} title
 * @param {any[]} content
 * @param {{kind?: string, actions?: any}} [more] its classes, and what stands at the end of the heading
 */
export function section(id, title, content, { kind = "stack", actions } = {}) {
  const heading = h("h2", { id }, title);
  return h(
    "section",
    { class: kind, "aria-labelledby": id, "data-key": id },
    actions ? h("div", { class: "row" }, heading, h("div", { class: "row push" }, actions)) : heading,
    content,
  );
}

/** Return a field for a text to find in names. @param {(text: string) => void} find is given the text in small letters */
export function searchField(find) {
  const oninput = (/** @type {any} */ event) => {
    find(event.target.value.toLocaleLowerCase());
    redraw();
  };
  return [
    h("label", { class: "vh", for: "search" }, t("filter.search")),
    h("input", { class: "input", id: "search", type: "search", placeholder: t("filter.search"), oninput }),
  ];
}

/**
 * Return a box to check, or one of several to choose, with its label.
 * @param {string} kind @param {any} label @param {Record<string, any>} attributes @param {(isChecked: boolean) => void} set
 */
export function checkbox(kind, label, attributes, set) {
  const onchange = (/** @type {any} */ event) => {
    set(event.target.checked);
    redraw();
  };
  return h("label", { class: kind }, h("input", { type: "checkbox", onchange, ...attributes }), label);
}

/** Let the browser save a file. @param {string} name @param {Blob} content */
export function saveFile(name, content) {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Return links to the languages. */
export function languageLinks() {
  /** @param {string} code */
  const choose = (code) => async (/** @type {Event} */ event) => {
    event.preventDefault();
    await chooseLanguage(code);
    redraw();
  };
  return h(
    "p",
    { class: "row langs" },
    Object.entries(LANGUAGES).map(([code, name]) => h(
      "a",
      { href: location.hash, lang: code, hreflang: code, "aria-current": code === language && "true", onclick: choose(code) },
      name,
    )),
  );
}

/**
 * Return a link or a button. Its name is one text: browsers put a blank before a hidden element.
 * @param {"a" | "button"} tag @param {Record<string, any>} attributes @param {any} content
 */
export function control(tag, attributes, content) {
  const element = h(tag, attributes, content);
  if (element.querySelector(".vh")) element.setAttribute("aria-label", element.textContent);
  return element;
}

/** Return a button. @param {string} kind @param {any} content @param {(event: Event) => void} onclick @param {Record<string, any>} [more] */
export function button(kind, content, onclick, more = {}) {
  return control("button", { type: "button", class: `btn ${kind}`, onclick, ...more }, content);
}

/** Return what is shown while the first data are on their way. @param {number} rows */
export function bones(rows) {
  const row = () => h(
    "li",
    { class: "slot" },
    h("p", { class: "when" }, h("span", { class: "bones" })),
    h("div", { class: "what" }, h("span", { class: "bones half" })),
  );
  return h("ol", { class: "slots", "aria-hidden": "true" }, Array.from({ length: rows }, row));
}

/**
 * Return the page of an error: what is not there, or not for this person, has other ways on than asking again.
 * @param {string} code @param {() => void} again @param {Record<string, any>} [variables]
 */
export function failure(code, again, variables = {}) {
  const ways = code.endsWith("_NOT_FOUND")
    ? [!me && button("", t("tab.signin"), signInFirst), h("a", { class: "btn second", href: "#/" }, t("tab.courses"))]
    : button("second", t("again"), again);
  return notice("stop", "warning", [errorText(code, variables)], ways);
}

/** Return how current a list is: at one place, beside the title. @param {"live" | "reading" | "old"} state */
export function freshness(state) {
  if (lostAt) return h("p", { class: "live stale" }, t("live.lost", { time: timeOf(new Date(lostAt), schoolZone) }));
  if (state === "live") return h("p", { class: "live" }, t("live.now"));
  if (isConnecting()) return h("p", { class: "live stale" }, t("ready.connecting"));
  return h("p", { class: "live stale" }, t(state === "reading" ? "live.reading" : "live.old"));
}

/** Say in which zone times are, if it is not that of the device. @param {string} zone */
export function zoneNote(zone) {
  return zone !== deviceZone && h("p", { class: "soft span" }, zoneText(zone));
}

/** Scroll what the next frame shows above the navigation. @param {string} selector */
export function see(selector) {
  requestAnimationFrame(() => document.querySelector(selector)?.scrollIntoView({ block: "nearest" }));
}

/** What is asked before it is done, by its id. */
let asked = "";

/**
 * Return a button that asks once, in its own place, before it acts.
 * @param {string} id
 * @param {string} kind of the button
 * @param {{label: any, question: string, yes: string, no: string}} texts
 * @param {() => void} act
 */
export function askOnce(id, kind, { label, question, yes, no }, act) {
  /** @param {string} next */
  const ask = (next) => () => {
    asked = next;
    redraw();
    see(".asked");
  };
  if (asked !== id) return h("div", { class: "ask", "data-key": id }, button(kind, label, ask(id)));
  return h(
    "div",
    { class: "ask asked", "data-key": id, role: "group", "aria-label": question },
    h("p", null, h("strong", null, question)),
    h("div", { class: "row" }, button("second", no, ask("")), button("final", yes, () => {
      asked = "";
      act();
    })),
  );
}

/** A QR code as the API draws it: a light square, and lines from module to module. */
const QR = /^<svg [^>]*\bwidth="(\d{1,4})" height="\1"[^>]*>(?:<title>[^<]*<\/title>)?<g transform="scale\((\d{1,2})\)"><path fill="#fff" d="[Mhvz\d.\s-]+"\/><path stroke="#000" d="([Mmhv\d.\s-]+)"\/><\/g><\/svg>\s*$/;

/**
 * Return the code that is scanned at the door. Nobody types its 56 letters: the door finds names as well.
 * @param {{checkInQr: string}} booking @param {string} title
 */
export function checkInCodeFigure({ checkInQr }, title) {
  return h(
    "div",
    { class: "code", "data-key": "code" },
    qrCode(checkInQr, t("week.codeOf", { title })),
    h("p", { class: "small soft" }, t("week.codeHelp")),
  );
}

/** Return a QR code, built from its path alone. @param {string} source SVG of the API @param {string} label */
function qrCode(source, label) {
  const found = QR.exec(source);
  if (!found) return null;
  const size = Number(found[1]) / Number(found[2]);
  return svg(
    "svg",
    { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    svg("path", { d: found[3] }),
  );
}

/**
 * Return what can be done with a booking: add it to the calendar of the device, move it, and give it back.
 * @param {any} slot @param {string | null | undefined} calendarUrl @param {boolean} canMove @param {() => void} giveBack
 */
export function bookingActions(slot, calendarUrl, canMove, giveBack) {
  return h(
    "div",
    { class: "row", "data-key": "change" },
    calendarUrl && control("a", { class: "btn second", href: calendarUrl }, [icon("week"), t("week.addToCalendar"), whose(slot.title)]),
    canMove && slot.campaign?.admission === "ANY" && control(
      "a",
      { class: "btn second", href: `#/slot/${slot.id}/swap/${slot.person?.id ?? ""}` },
      [icon("swap"), t("week.swap"), whose(slot.title)],
    ),
    askOnce(
      `back ${slot.id}/${slot.person?.id ?? ""}`,
      "plain",
      { label: [t("week.giveBack"), whose(slot.title)], question: t("week.giveBackAsk", { title: slot.title }), yes: t("week.giveBack"), no: t("week.keep") },
      giveBack,
    ),
  );
}
