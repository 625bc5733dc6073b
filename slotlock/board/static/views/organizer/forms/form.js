// @ts-check
/** Forms of organizers: what was typed stays, and an error stands at its field. */
import { me, newKey } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, icon } from "../../../parts.js";
import { problemText, sentences, t, zoneName } from "../../../text.js";
import { answer, focusKey, why } from "./actions.js";
import { UNITS, unitName, unitOf } from "./duration.js";
import { groupList, readGroups, unknownGroups } from "./groups.js";
import { fromLocal, instantsOf, toLocal } from "./localtime.js";

/** The attributes of a field for a whole number. */
export const COUNT = { type: "number", min: 0, inputmode: "numeric" };
const MOST_NUMBER = 2 ** 31 - 1;
let forms = 0;

/** A form: its values by field, and what is wrong with them. */
export class Form {
  owner = me?.id;
  isSending = false;
  note = "";
  /** @type {any} The result that did not work. */
  refusal = null;
  /** @type {Record<string, string>} */
  errors = {};
  /** @type {boolean | undefined} Whether the fields that are seldom used are shown. */
  isMore;
  /** @type {Record<string, number>} The units of durations by field, in minutes. */
  units = {};
  key = newKey();
  number = (forms += 1);

  /**
   * @param {string} texts what the names of its texts begin with: those of its fields, and with "Help" what to know about them
   * @param {Record<string, any>} values
   */
  constructor(texts, values) {
    this.texts = texts;
    this.values = values;
  }

  /** Use a new value; the request is another one then, and has another key. @param {string} name @param {any} value */
  set(name, value) {
    this.values[name] = value;
    this.key = newKey();
    if (this.errors[name] || this.note) {
      delete this.errors[name];
      this.note = "";
      this.refusal = null;
      redraw();
    }
  }

  /** @param {string} name */
  id(name) {
    return `form${this.number}-${name}`;
  }

  /** Return the text of a field. @param {string} name */
  label(name) {
    return t(`${this.texts}.${name}`);
  }

  /** @param {string} name */
  help(name) {
    return t(`${this.texts}.${name}Help`, {}, "");
  }

  /** Return a field. @param {string} name @param {Record<string, any>} [attributes] */
  field(name, { label = this.label(name), help = this.help(name), onset, ...others } = {}) {
    const id = this.id(name);
    const oninput = (/** @type {any} */ event) => {
      this.set(name, event.target.value);
      onset?.();
      if (onset) redraw();
    };
    return this.wrap(name, h("label", { for: id }, label), input(this.values[name], { id, name, oninput, ...this.described(name, help), ...others }), help);
  }

  /** @param {string} name @param {any} label @param {any} content @param {any} help */
  wrap(name, label, content, help) {
    return h(
      "div",
      { class: "field", "data-key": this.id(name) },
      label,
      content,
      help && h("p", { class: "small soft", id: `${this.id(name)}-help` }, help),
      this.error(name),
    );
  }

  /** @param {string} name */
  error(name) {
    const error = this.errors[name];
    return error && h("p", { class: "error", id: `${this.id(name)}-error` }, icon("warning"), h("span", null, error));
  }

  /** @param {string} name @param {any} help */
  described(name, help) {
    const error = this.errors[name];
    const ids = [help && `${this.id(name)}-help`, error && `${this.id(name)}-error`].filter(Boolean).join(" ");
    return { "aria-describedby": ids || null, "aria-invalid": error ? "true" : null };
  }

  /** Return a choice of a few values. @param {string} name @param {Array<[string, string]>} options @param {Record<string, any>} [attributes] */
  select(name, options, attributes = {}) {
    return this.field(name, { options, onset: () => null, ...attributes });
  }

  /** @param {string} name @param {{label?: string, help?: string}} [texts] */
  check(name, { label = this.label(name), help = this.help(name) } = {}) {
    const id = this.id(name);
    const onchange = (/** @type {any} */ event) => {
      this.set(name, event.target.checked);
      redraw();
    };
    const box = h("input", { type: "checkbox", id, name, checked: Boolean(this.values[name]), onchange, ...this.described(name, help) });
    return this.wrap(name, h("label", { class: "check", for: id }, box, label), null, help);
  }

  /** Return a field for a time in a zone. @param {string} name @param {string} zone @param {Record<string, any>} [attributes] */
  time(name, zone, attributes = {}) {
    const isTwice = instantsOf(this.values[name] ?? "", zone).length > 1;
    const help = sentences([zoneHelp(zone), isTwice && t("form.twice")]);
    return this.field(name, { type: "datetime-local", onset: () => null, help, ...attributes });
  }

  /** Return a field for a duration, in minutes, with its unit. @param {string} name @param {number} [ofNone] the unit of no time at all, in minutes */
  duration(name, ofNone = 60) {
    const [id, label, help, value] = [this.id(name), this.label(name), this.help(name), this.values[name]];
    const unit = (this.units[name] ??= unitOf(value, ofNone));
    const oninput = (/** @type {any} */ event) => this.set(name, event.target.value && event.target.value * this.units[name]);
    const onchange = (/** @type {any} */ event) => {
      const [minutes, next] = [this.values[name], Number(event.target.value)];
      this.set(name, minutes && (minutes / this.units[name]) * next);
      this.units[name] = next;
    };
    const options = UNITS.map(([each, minutes]) => [String(minutes), unitName(each)]).reverse();
    return this.wrap(name, h("label", { for: id }, label), h("div", { class: "duration" },
      input(value && value / unit, { id, name, ...COUNT, oninput, ...this.described(name, help) }),
      input(String(unit), { class: "input fit", options, "aria-label": t("form.unit", { label }), onchange })), help);
  }

  /**
   * Return the instant of a time, or null with an error. What was not changed stays the same instant, also in an hour that comes twice.
   * @param {string} name
   * @param {string} zone
   * @param {string | null} [original]
   */
  instant(name, zone, original = null) {
    const local = this.values[name];
    if (!local) return this.missing(name);
    if (original && local === toLocal(original, zone)) return original;
    return fromLocal(local, zone) ?? this.fail(name, t("form.gap"));
  }

  /** Return a whole number, null if there is none. @param {string} name @param {boolean} [isNeeded] */
  integer(name, isNeeded = true) {
    const text = String(this.values[name] ?? "").trim();
    if (!text) return isNeeded ? this.missing(name) : null;
    const value = Number(text);
    return isWhole(value) ? value : this.fail(name, t("form.integer"));
  }

  /** Return a text, null if it is empty. @param {string} name @param {boolean} [isNeeded] */
  text(name, isNeeded = false) {
    return String(this.values[name] ?? "").trim() || (isNeeded ? this.missing(name) : null);
  }

  /** @param {string} name */
  missing(name) {
    return this.fail(name, t("form.missing"));
  }

  /** Note what is wrong. @param {string} name @param {string} message */
  fail(name, message) {
    this.errors[name] = message;
    return null;
  }

  /**
   * Return rows that can be added and removed.
   * @param {string} name
   * @param {string} add the text of the button
   * @param {() => any} empty returns a new row
   * @param {Record<string, Record<string, any>>} cells the attributes of their inputs by the part of a row
   * @param {{label?: string, help?: string}} [texts]
   */
  rows(name, add, empty, cells, { label = this.label(name), help = this.help(name) } = {}) {
    const rows = this.values[name];
    const change = (/** @type {any[]} */ changed) => {
      this.set(name, changed);
      redraw();
    };
    return h(
      "fieldset",
      { class: "field rows", "data-key": this.id(name) },
      h("legend", null, label),
      help && h("p", { class: "small soft" }, help),
      rows.map((/** @type {any} */ row, /** @type {number} */ index) =>
        h(
          "div",
          { class: "row", "data-key": `${this.id(name)} ${index} of ${rows.length}` },
          Object.entries(cells).map(([part, attributes]) => this.cell(name, row, part, attributes)),
          button("plain", [t("form.remove"), h("span", { class: "vh" }, ` ${label} ${index + 1}`)], () => {
            change(rows.filter((/** @type {any} */ each) => each !== row));
            focusKey(this.id(name), " > p > .btn");
          }),
        )),
      this.error(name),
      h("p", null, button("second", add, () => {
        change([...rows, empty()]);
        focusKey(this.id(name), " > .row:last-of-type :is(input, select)");
      })),
    );
  }

  /** Return an input of a row. @param {string} name of the rows @param {any} row @param {string} part @param {Record<string, any>} attributes */
  cell(name, row, part, { label = this.label(part), ...others }) {
    const oninput = (/** @type {any} */ event) => {
      row[part] = event.target.value;
      this.set(name, this.values[name]);
    };
    return h("label", { class: "cell" }, h("span", { class: "small soft" }, label), input(row[part], { oninput, ...this.described(name, ""), ...others }));
  }

  /**
   * Return fields that are seldom used: open from the start if one of these has a value, and if any has an error.
   * @param {string[]} names @param {any[]} content
   */
  more(names, content) {
    this.isMore ??= names.some((name) => !["", "false"].includes(String(this.values[name] ?? "")));
    const body = h("div", { class: "stack loose" }, content);
    const ontoggle = (/** @type {any} */ event) => {
      this.isMore = event.target.open;
    };
    return h(
      "details",
      { class: "more", "data-key": this.id("more"), open: this.isMore || body.querySelector(".error") !== null, ontoggle },
      h("summary", null, t("form.more")),
      body,
    );
  }

  /** Return the field of the limit of each group; it stands where people look for the class limit. */
  limitOfEach() {
    return this.field("groupLimitsEach", { ...COUNT, label: t("form.limitOfEach"), help: t("form.limitOfEachHelp") });
  }

  /** Return the rows of limits of other groups. */
  limits() {
    readGroups(this);
    const rows = this.values.groupLimits;
    return [
      groupList(),
      this.rows(
        "groupLimits",
        t("form.addLimit"),
        () => ({ group: "", limit: "" }),
        { group: { label: t("form.group"), list: "groups", onchange: redraw }, limit: { ...COUNT, label: t("form.limit") } },
        { label: t("form.groupLimits"), help: t("form.groupLimitsHelp") },
      ),
      unknownGroups(rows.map((/** @type {any} */ row) => row.group.trim()).filter(Boolean), (group, other) => {
        this.set("groupLimits", rows.map((/** @type {any} */ row) => (row.group.trim() === group ? { ...row, group: other } : row)));
      }),
    ];
  }

  /** Return the values of limits by group: that of each group, and those of others. @param {any[]} [limits] */
  static limitValues(limits = []) {
    const others = limits.filter((each) => each.group !== "*");
    return { groupLimitsEach: limits.find((each) => each.group === "*")?.limit, groupLimits: others.map((each) => ({ ...each })) };
  }

  /** Return the limits by group as the API has them. */
  groupLimits() {
    const each = this.integer("groupLimitsEach", false);
    const others = this.values.groupLimits
      .map((/** @type {any} */ row) => ({ group: row.group.trim(), limit: row.limit === "" ? NaN : Number(row.limit) }))
      .filter((/** @type {any} */ row) => row.group || !Number.isNaN(row.limit));
    if (others.some((/** @type {any} */ row) => !row.group || !isWhole(row.limit))) this.fail("groupLimits", t("form.limitRow"));
    return each === null ? others : [{ group: "*", limit: each }, ...others];
  }

  /** Return the rows of days. @param {string} name */
  days(name) {
    return this.rows(name, t("form.addDay"), () => ({ day: "" }), { day: { type: "date", label: t("form.day") } });
  }

  /** Return the days of rows, without empty ones. @param {string} name @returns {string[]} */
  dayList(name) {
    return this.values[name].map((/** @type {any} */ row) => row.day).filter(Boolean);
  }

  /**
   * Send the form; returns the result, or null if it did not work, which the form then shows.
   * @param {string} name of an operation
   * @param {() => Record<string, any> | null} toVariables notes errors
   */
  async send(name, toVariables) {
    if (this.isSending) return null;
    this.errors = {};
    this.note = "";
    this.refusal = null;
    const variables = toVariables();
    if (!variables || Object.keys(this.errors).length) return this.showErrors();
    this.isSending = true;
    redraw();
    const result = await answer(name, variables, this.owner);
    this.isSending = false;
    if (!result.code) {
      redraw();
      return result;
    }
    this.refusal = result;
    const others = [];
    for (const problem of result.fields ?? []) {
      const { field } = problem;
      const message = problemText(problem);
      if (field in this.values) this.errors[field] ??= message;
      else if (this.errors[PLACES[field]] === undefined && PLACES[field] in this.values) this.errors[PLACES[field]] = message;
      else others.push(message);
    }
    this.note = result.fields ? sentences(others) : why(result);
    return this.showErrors();
  }

  /** Focus the first field of a form that will appear in the next frame. */
  focusFirst() {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const form = document.getElementById(this.id("whole"));
      /** @type {HTMLElement | null | undefined} */ (form?.querySelector("input, select, textarea"))?.focus({ preventScroll: true });
      form?.scrollIntoView({ block: "start" });
    }));
  }

  /** @returns {null} */
  showErrors() {
    redraw();
    requestAnimationFrame(() => {
      const form = document.getElementById(this.id("whole"));
      /** @type {HTMLElement | null | undefined} */ (form?.querySelector("[aria-invalid]") ?? form?.querySelector(".notice"))?.focus();
    });
    return null;
  }

  /**
   * Return the form.
   * @param {string} title
   * @param {any[]} fields
   * @param {{submit?: string, kind?: string, onsubmit: () => any, oncancel?: () => any, more?: any}} actions with the text and the kind of the button
   */
  render(title, fields, { submit = t("form.save"), kind = "", onsubmit, oncancel, more }) {
    return h(
      "form",
      {
        class: "sheet stack loose form",
        id: this.id("whole"),
        "data-key": this.id("whole"),
        novalidate: true,
        "aria-label": title,
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          onsubmit();
        },
      },
      h("h2", null, title),
      fields.flat(),
      this.note && h("div", { class: "notice stop", role: "alert", tabindex: -1 }, icon("warning"), h("p", null, this.note)),
      more,
      h(
        "div",
        { class: "row" },
        h("button", { class: `btn ${kind}`, "aria-disabled": this.isSending && "true" }, this.isSending ? t("form.sending") : submit),
        oncancel && button("plain", t("form.cancel"), oncancel),
      ),
    );
  }
}

/** Fields of the API that a form shows elsewhere. @type {Record<string, string>} */
const PLACES = { count: "noShowCount", days: "noShowDays", resourceIds: "resources", resource: "resources", rrule: "last", until: "last", timetable: "weekly" };

/** Whether the API takes this for a whole number. @param {number} value */
function isWhole(value) {
  return Number.isInteger(value) && Math.abs(value) <= MOST_NUMBER;
}

/** Return an input, or a choice if there are options, each a value and its text. @param {any} value @param {Record<string, any>} attributes */
export function input(value, { options, tag = options ? "select" : "input", ...others }) {
  return h(tag, { class: "input", ...(!options && { value: value ?? "", "data-controlled": true }), ...others }, options && optionsOf(options, value));
}

/** Return the options of a choice. @param {Array<[string, string]>} options each a value and its text @param {string} chosen */
export function optionsOf(options, chosen) {
  return options.map(([value, text]) => h("option", { value, selected: value === chosen }, text));
}

/** Say in which zone a time is. @param {string} zone */
export function zoneHelp(zone) {
  return t("form.zone", { zone: zoneName(zone) });
}
