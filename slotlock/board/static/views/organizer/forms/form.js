// @ts-check
/** Forms of organizers: what was typed stays, and an error stands at its field. */
import { newKey } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, icon } from "../../../parts.js";
import { problemText, t } from "../../../text.js";
import { answer, why } from "./actions.js";
import { UNITS, unitName } from "./duration.js";
import { instantsOf, toLocal } from "./localtime.js";

const MOST_NUMBER = 2 ** 31 - 1;
let forms = 0;

/** A form: its values by field, and what is wrong with them. */
export class Form {
  isSending = false;
  note = "";
  /** @type {any} The result that did not work. */
  refusal = null;
  /** @type {Record<string, string>} */
  errors = {};
  /** @type {boolean | undefined} Whether the fields that are seldom used are shown. */
  isMore;
  key = newKey();
  number = (forms += 1);

  /** @param {Record<string, any>} values */
  constructor(values) {
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

  /** Return a field. @param {string} name @param {string} label @param {Record<string, any>} [attributes] @param {any} [help] */
  field(name, label, attributes = {}, help = "") {
    const id = this.id(name);
    const { tag = "input", children = [], onset = null, ...others } = attributes;
    const oninput = (/** @type {any} */ event) => {
      this.set(name, event.target.value);
      onset?.();
      if (onset) redraw();
    };
    const value = tag === "select" ? {} : { value: this.values[name] ?? "", "data-controlled": true };
    return this.wrap(name, h("label", { for: id }, label), h(tag, { class: "input", id, name, oninput, ...value, ...this.described(name, help), ...others }, ...children), help);
  }

  /** @param {string} name @param {any} label @param {any} input @param {any} help */
  wrap(name, label, input, help) {
    const error = this.errors[name];
    return h(
      "div",
      { class: "field", "data-key": this.id(name) },
      label,
      input,
      help && h("p", { class: "small soft", id: `${this.id(name)}-help` }, help),
      error && h("p", { class: "error", id: `${this.id(name)}-error` }, icon("warning"), h("span", null, error)),
    );
  }

  /** @param {string} name @param {any} help */
  described(name, help) {
    const error = this.errors[name];
    const ids = [help && `${this.id(name)}-help`, error && `${this.id(name)}-error`].filter(Boolean).join(" ");
    return { "aria-describedby": ids || null, "aria-invalid": error ? "true" : null };
  }

  /** Return a choice of a few values. @param {string} name @param {string} label @param {Array<[string, string]>} options @param {any} [help] */
  select(name, label, options, help = "") {
    const children = options.map(([value, text]) => h("option", { value, selected: value === this.values[name] }, text));
    return this.field(name, label, { tag: "select", children, onset: () => null }, help);
  }

  /** @param {string} name @param {string} label @param {any} [help] */
  check(name, label, help = "") {
    const id = this.id(name);
    const onchange = (/** @type {any} */ event) => {
      this.set(name, event.target.checked);
      redraw();
    };
    const input = h("input", { type: "checkbox", id, name, checked: Boolean(this.values[name]), onchange, ...this.described(name, help) });
    return this.wrap(name, h("label", { class: "check", for: id }, input, label), null, help);
  }

  /** Return a field for a time in a zone. @param {string} name @param {string} label @param {string} zone @param {Record<string, any>} [attributes] */
  time(name, label, zone, attributes = {}) {
    const isTwice = instantsOf(this.values[name] ?? "", zone).length > 1;
    const help = [t("form.zone", { zone: zone.replace(/_/g, " ") }), isTwice && t("form.twice")].filter(Boolean).join(" ");
    return this.field(name, label, { type: "datetime-local", onset: () => null, ...attributes }, help);
  }

  /** Return a field for a duration, with its unit; the values are the number and, with "Unit" after the name, the minutes of the unit. @param {string} name @param {string} label @param {any} [help] */
  duration(name, label, help = "") {
    const id = this.id(name);
    const units = [...UNITS].reverse().map(([unit, minutes]) => h("option", { value: String(minutes), selected: minutes === Number(this.values[`${name}Unit`]) }, unitName(unit)));
    const input = h("input", { class: "input", id, name, type: "number", min: 0, inputmode: "numeric", value: this.values[name], "data-controlled": true, oninput: (/** @type {any} */ event) => this.set(name, event.target.value), ...this.described(name, help) });
    const unit = h("select", { class: "input fit", "aria-label": t("form.unit", { label }), onchange: (/** @type {any} */ event) => this.set(`${name}Unit`, event.target.value) }, units);
    return this.wrap(name, h("label", { for: id }, label), h("div", { class: "duration" }, input, unit), help);
  }

  /** Return a duration in minutes, null if there is none. @param {string} name @param {boolean} [isNeeded] */
  minutes(name, isNeeded = true) {
    const count = this.integer(name, isNeeded);
    const minutes = count === null ? null : count * Number(this.values[`${name}Unit`]);
    return minutes !== null && Math.abs(minutes) > MOST_NUMBER ? this.fail(name, t("form.integer")) : minutes;
  }

  /**
   * Return the instant of a time, or null with an error. What was not changed stays the same instant, also in an hour that comes twice.
   * @param {string} name
   * @param {string} zone
   * @param {string | null} [original]
   */
  instant(name, zone, original = null) {
    const local = this.values[name];
    if (!local) return this.fail(name, t("form.missing"));
    if (original && local === toLocal(original, zone)) return original;
    const [at] = instantsOf(local, zone);
    return at === undefined ? this.fail(name, t("form.gap")) : new Date(at).toISOString();
  }

  /** Return a whole number, null if there is none. @param {string} name @param {boolean} [isNeeded] */
  integer(name, isNeeded = true) {
    const text = String(this.values[name] ?? "").trim();
    if (!text) return isNeeded ? this.fail(name, t("form.missing")) : null;
    const value = Number(text);
    return Number.isInteger(value) && Math.abs(value) <= MOST_NUMBER ? value : this.fail(name, t("form.integer"));
  }

  /** Return a text, null if it is empty. @param {string} name */
  text(name) {
    return String(this.values[name] ?? "").trim() || null;
  }

  /** Note what is wrong. @param {string} name @param {string} message */
  fail(name, message) {
    this.errors[name] = message;
    return null;
  }

  /** Return rows that can be added and removed. @param {string} name @param {string} label @param {string} add @param {any} empty a new row @param {(row: any, index: number) => any} build @param {any} [help] */
  rows(name, label, add, empty, build, help = "") {
    const rows = this.values[name];
    const change = (/** @type {any[]} */ changed) => {
      this.set(name, changed);
      redraw();
    };
    const error = this.errors[name];
    return h(
      "fieldset",
      { class: "field rows", "data-key": this.id(name) },
      h("legend", null, label),
      help && h("p", { class: "small soft" }, help),
      rows.map((/** @type {any} */ row, /** @type {number} */ index) =>
        h("div", { class: "row", "data-key": `${this.id(name)} ${index} of ${rows.length}` }, build(row, index), button("plain", [t("form.remove"), h("span", { class: "vh" }, ` ${label} ${index + 1}`)], () => {
          change(rows.filter((/** @type {any} */ _, /** @type {number} */ other) => other !== index));
          requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="${this.id(name)}"] > p > .btn`))?.focus());
        }))),
      error && h("p", { class: "error", id: `${this.id(name)}-error` }, icon("warning"), h("span", null, error)),
      h("p", null, button("second", add, () => {
        change([...rows, typeof empty === "function" ? empty() : structuredCloneOf(empty)]);
        requestAnimationFrame(() => [.../** @type {any} */ (document.querySelectorAll(`[data-key="${this.id(name)}"] .row`))].pop()?.querySelector("input, select")?.focus());
      })),
    );
  }

  /** Return an input of a row. @param {string} name of the rows @param {any} row @param {string} part @param {string} label @param {Record<string, any>} [attributes] */
  cell(name, row, part, label, attributes = {}) {
    const oninput = (/** @type {any} */ event) => {
      row[part] = event.target.value;
      this.set(name, this.values[name]);
    };
    const { tag = "input", children = [], ...others } = attributes;
    const value = tag === "select" ? {} : { value: row[part], "data-controlled": true };
    const described = this.errors[name] ? { "aria-invalid": "true", "aria-describedby": `${this.id(name)}-error` } : {};
    return h("label", { class: "cell" }, h("span", { class: "small soft" }, label), h(tag, { class: "input", ...value, oninput, ...described, ...others }, ...children));
  }

  /** Return fields that are seldom used: open from the start if one of them has a value or an error. @param {string[]} names @param {any[]} content */
  more(names, content) {
    this.isMore ??= names.some((name) => (Array.isArray(this.values[name]) ? this.values[name].length : this.values[name]));
    const isOpen = this.isMore || names.some((name) => this.errors[name]);
    const ontoggle = (/** @type {any} */ event) => {
      this.isMore = event.target.open;
    };
    return h("details", { class: "more", "data-key": this.id("more"), open: isOpen, ontoggle }, h("summary", null, t("form.more")), h("div", { class: "stack loose" }, content));
  }

  /** Return the field of the limit of each group; it stands where people look for the class limit. @param {string} name */
  limitOfEach(name) {
    return this.field(`${name}Each`, t("form.limitOfEach"), { type: "number", min: 0, inputmode: "numeric" }, t("form.limitOfEachHelp"));
  }

  /** Return the rows of limits of other groups. @param {string} name */
  limits(name) {
    return this.rows(name, t("form.groupLimits"), t("form.addLimit"), { group: "", limit: "" }, (row) => [
      this.cell(name, row, "group", t("form.group")),
      this.cell(name, row, "limit", t("form.limit"), { type: "number", min: 0, inputmode: "numeric" }),
    ], t("form.groupLimitsHelp"));
  }

  /** Return the values of limits by group: that of each group, and those of others. @param {string} name @param {any[]} [limits] */
  static limitValues(name, limits = []) {
    const rows = limits.map((each) => ({ group: each.group, limit: String(each.limit) }));
    return { [`${name}Each`]: rows.find((each) => each.group === "*")?.limit ?? "", [name]: rows.filter((each) => each.group !== "*") };
  }

  /** Return the limits by group as the API has them. @param {string} name */
  groupLimits(name) {
    const each = this.integer(`${name}Each`, false);
    const rows = this.values[name].filter((/** @type {any} */ row) => row.group.trim() || row.limit !== "");
    if (rows.some((/** @type {any} */ row) => !row.group.trim() || row.limit === "" || !Number.isInteger(Number(row.limit)) || Math.abs(Number(row.limit)) > MOST_NUMBER)) {
      this.fail(name, t("form.limitRow"));
    }
    const others = rows.map((/** @type {any} */ row) => ({ group: row.group.trim(), limit: Number(row.limit) }));
    return each === null ? others : [{ group: "*", limit: each }, ...others];
  }

  /** Return the rows of days. @param {string} name @param {string} label @param {any} [help] */
  days(name, label, help = "") {
    return this.rows(name, label, t("form.addDay"), { day: "" }, (row) => [this.cell(name, row, "day", t("form.day"), { type: "date" })], help);
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
    const result = await answer(name, variables);
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
    this.note = result.fields ? others.join(" ") : why(result);
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
   * @param {{submit: string, onsubmit: () => any, oncancel?: () => any, more?: any}} actions
   */
  render(title, fields, { submit, onsubmit, oncancel, more }) {
    return h(
      "form",
      { class: "sheet stack loose form", id: this.id("whole"), "data-key": this.id("whole"), novalidate: true, "aria-label": title, onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        onsubmit();
      } },
      h("h2", null, title),
      fields.flat(),
      this.note && h("div", { class: "notice stop", role: "alert", tabindex: -1 }, icon("warning"), h("p", null, this.note)),
      more,
      h("div", { class: "row" }, h("button", { class: "btn", "aria-disabled": this.isSending && "true" }, this.isSending ? t("form.sending") : submit), oncancel && button("plain", t("form.cancel"), oncancel)),
    );
  }
}

/** Fields of the API that a form shows elsewhere. @type {Record<string, string>} */
const PLACES = { count: "noShowCount", days: "noShowDays", eligibleGroups: "groups", resourceIds: "resources", resource: "resources", rrule: "last", until: "last", weekly: "weekly", timetable: "weekly", extra: "extra", first: "first", startTimes: "starts" };

/** @param {any} value */
function structuredCloneOf(value) {
  return JSON.parse(JSON.stringify(value));
}
