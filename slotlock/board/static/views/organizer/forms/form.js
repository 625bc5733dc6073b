// @ts-check
/** Forms of organizers: what was typed stays, and an error stands at its field. */
import { site } from "../../../page.js";
import { me, newKey } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { askOnce, button, icon } from "../../../parts.js";
import { tab } from "../../../storage.js";
import { problemText, sentences, t, zoneName } from "../../../text.js";
import { answer, focusKey, why } from "./actions.js";
import { UNITS, unitName, unitOf } from "./duration.js";
import { fromLocal, instantsOf, isZone, toLocal } from "./localtime.js";

/** The attributes of a field for a whole number. */
export const COUNT = { type: "number", min: 0, inputmode: "numeric" };
const MOST_NUMBER = 2 ** 31 - 1;
let forms = 0;
/** The form that is shown. @type {Form | null} */
let shownForm = null;

/** Ask before what is typed is lost with the page. @param {Event} event */
function askBeforeUnload(event) {
  if (shownForm?.isTyped && document.getElementById(shownForm.id("whole"))) event.preventDefault();
}

/**
 * A field of the API: its name, its value in what is new, and the attributes of its input; `sent` is another name in the input of the API,
 * "" of a part of another field. Its kind has `from`, what the form begins with, `show`, and `read`, what the API gets, which notes errors.
 * @typedef {{name: string, kind?: string, default?: any, sent?: string, ofMail?: boolean, from?: (object: any, form: Form, name: string) => any,
 *   show?: (form: Form, field: any) => any, read?: (form: Form, field: any) => any, [attribute: string]: any}} Field
 */

/** @param {Form} form @param {Field} field */
function readCount(form, { name, required = false }) {
  return form.integer(name, required);
}

/** @type {Record<string, Partial<Field>>} */
const FIELD_KINDS = {
  text: { show: (form, { name, ...others }) => form.field(name, others), read: (form, { name, required }) => form.text(name, required) },
  count: { show: (form, { name, ...others }) => form.field(name, { ...COUNT, ...others }), read: readCount },
  duration: { show: (form, { name, ofNone }) => form.duration(name, ofNone), read: readCount },
  check: { show: (form, { name, help }) => form.check(name, { help }) },
  choice: { show: (form, { name, options }) => form.select(name, options.map((/** @type {string} */ each) => [each, form.label(each)])) },
  time: {
    from: (object, { zone }, name) => toLocal(object[name], zone),
    show: (form, { name, ...others }) => form.time(name, form.zone, others),
    read: (form, { name, required }) => form.text(name, required) && form.instant(name, form.zone, form.object[name]),
  },
};

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
  /** @type {Record<string, any>} What was typed. */
  typed = {};
  /** Where it is kept until it is sent or discarded, and whether it comes from there. */
  place = "";
  isKept = false;
  isSent = false;
  key = newKey();
  number = (forms += 1);

  /**
   * @param {string} texts what the names of its texts begin with: those of its fields, and with "Help" what to know about them
   * @param {Record<string, any>} values
   * @param {Field[]} [fields] those that `show` knows
   * @param {any} [object] what the API has of them, null if it is new
   */
  constructor(texts, values, fields = [], object = null) {
    this.texts = texts;
    this.values = values;
    this.object = object ?? {};
    this.fields = fields.map((field) => /** @type {Field} */ ({ ...FIELD_KINDS[field.kind ?? "text"], ...field }));
    for (const { name, from, default: value } of this.fields) values[name] ??= (from ? from(this.object, this, name) : this.object[name]) ?? value;
  }

  /** Keep what is typed in the tab, and show what was typed there before. @param {string} [about] what it is about, by default this address */
  keep(about = location.hash) {
    this.place = `slotlock.form ${this.owner} ${this.texts} ${about}`;
    const kept = tab.read(this.place, ({ key, typed }) => typed && { key, typed });
    if (!kept) return this;
    this.isKept = true;
    Object.assign(this, kept);
    Object.assign(this.values, kept.typed);
    return this;
  }

  /** Forget what was typed, as it is sent or discarded. */
  forget() {
    this.typed = {};
    tab.remove(this.place);
  }

  get isTyped() {
    return !this.isSent && Object.keys(this.typed).length > 0;
  }

  /** The zone of the times, UTC while its name is being typed. @returns {string} */
  get zone() {
    return isZone(this.values.timeZone) ? this.values.timeZone : "UTC";
  }

  /** Return fields of the API by their names; those of a list are side by side. @param {...(string | Array<string | false> | false)} lines @returns {any} */
  show(...lines) {
    return lines.map((line) => {
      if (!line || Array.isArray(line)) return line && h("div", { class: "columns" }, this.show(...line));
      const { kind, default: _, from, read, sent, ofMail, show, ...field } = /** @type {any} */ (this.fields.find(({ name }) => name === line));
      for (const text of ["label", "help"]) if (field[text]) field[text] = t(field[text]);
      return (!ofMail || site.sendsMail || this.values[line]) && show(this, field);
    });
  }

  /** Return the input of the API; what is wrong is noted. @returns {Record<string, any>} */
  input() {
    const sent = this.fields.filter((field) => field.sent !== "");
    return Object.fromEntries(sent.map((field) => [field.sent ?? field.name, field.read ? field.read(this, field) : this.values[field.name]]));
  }

  /** Use a new value; the request is another one then, and has another key. @param {string} name @param {any} value */
  set(name, value) {
    if (!this.isTyped) redraw(); // it asks from now on
    this.typed[name] = this.values[name] = value;
    this.isSent = false;
    this.key = newKey();
    if (this.place) tab.set(this.place, JSON.stringify({ key: this.key, typed: this.typed }));
    addEventListener("beforeunload", askBeforeUnload);
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
   * @param {(last?: any) => any} next returns a new row, below the last one
   * @param {Record<string, any>} cells the attributes of their inputs, or a function of the row that returns them, by the part of a row
   * @param {{label?: string, help?: string}} [texts]
   */
  rows(name, add, next, cells, { label = this.label(name), help = this.help(name) } = {}) {
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
          Object.entries(cells).map(([part, attributes]) => this.cell(name, row, part, typeof attributes === "function" ? attributes(row) : attributes)),
          button("plain", [t("form.remove"), h("span", { class: "vh" }, ` ${label} ${index + 1}`)], () => {
            change(rows.filter((/** @type {any} */ each) => each !== row));
            focusKey(this.id(name), " > p > .btn");
          }),
        )),
      this.error(name),
      h("p", null, button("second", add, () => {
        change([...rows, next(rows[rows.length - 1])]);
        focusKey(this.id(name), " > .row:last-of-type :is(input, select)");
      })),
    );
  }

  /**
   * Return an input of a row, or of what `onset` changes in it. @param {string} name of the rows @param {any} row @param {string} part
   * @param {Record<string, any>} attributes
   */
  cell(name, row, part, { label = this.label(part), value = row[part], onset, ...others }) {
    const oninput = (/** @type {any} */ event) => {
      if (onset) onset(event.target.value, row);
      else row[part] = event.target.value;
      this.set(name, this.values[name]);
      if (onset) redraw();
    };
    return h("label", { class: "cell" }, h("span", { class: "small soft" }, label), input(value, { oninput, ...this.described(name, ""), ...others }));
  }

  /**
   * Return fields that are seldom used: open if one without a default has a value, and if any has an error.
   * @param {Array<[string, ...Parameters<Form["show"]>] | false>} parts each a heading, and its fields
   */
  more(...parts) {
    const names = parts.flat(2);
    const hasValue = (/** @type {Field} */ { name, default: value }) => value === undefined && String(this.values[name] || "");
    this.isMore ??= this.fields.some((field) => names.includes(field.name) && hasValue(field));
    const shown = parts.flatMap((part) => (part ? [h("h2", null, part[0]), this.show(.../** @type {any} */ (part.slice(1)))] : []));
    const body = h("div", { class: "stack loose" }, shown);
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
   * @param {() => Record<string, any> | null | Promise<Record<string, any> | null>} toVariables notes errors
   */
  async send(name, toVariables) {
    if (this.isSending) return null;
    this.errors = {};
    this.note = "";
    this.refusal = null;
    this.isSending = true;
    const variables = await toVariables();
    this.isSending = false;
    if (!variables || Object.keys(this.errors).length) return this.showErrors();
    this.isSending = true;
    redraw();
    const result = await answer(name, variables, this.owner);
    this.isSending = false;
    this.isSent = !result.code;
    if (this.isSent) {
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
    const place = PLACES[result.code];
    if (place in this.values) this.errors[place] = why(result);
    else this.note = result.fields ? sentences(others) : why(result);
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
   * @param {{submit?: string, kind?: string, onsubmit: () => any, oncancel?: () => any, more?: any, level?: string, other?: any}} actions
   *   with the text and the kind of the button, another button, and the level of the title
   */
  render(title, fields, { submit = t("form.save"), kind = "", onsubmit, oncancel, more, level = "h2", other }) {
    shownForm = this;
    const close = () => {
      this.forget();
      oncancel?.();
    };
    const texts = { label: t("form.cancel"), question: t("form.discardQuestion"), yes: t("form.discard"), no: t("form.back") };
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
      h(level, null, title),
      this.isKept && h("p", { class: "soft", "data-key": "kept" }, t("form.kept")),
      fields.flat(),
      this.note && h("div", { class: "notice stop", role: "alert", tabindex: -1 }, icon("warning"), h("p", null, this.note)),
      more,
      h(
        "div",
        { class: "row" },
        h("button", { class: `btn ${kind}`, "aria-disabled": this.isSending && "true" }, this.isSending ? t("signin.sending") : submit),
        other,
        oncancel && (this.isTyped ? askOnce(`discard ${this.number}`, "plain", texts, close) : button("plain", t("form.cancel"), close)),
      ),
    );
  }
}

/** Where a form shows problems of fields of the API, and refusals. @type {Record<string, string>} */
const PLACES = {
  count: "noShowCount",
  days: "noShowDays",
  resourceIds: "resources",
  resource: "resources",
  rrule: "last",
  until: "last",
  timetable: "weekly",
  CAPACITY_BELOW_TAKEN: "capacity",
  RESOURCE_TAKEN: "resources",
};

/** Whether the API takes this for a whole number. @param {number} value */
export function isWhole(value) {
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
  return t("zone", { zone: zoneName(zone) });
}
