// @ts-check
/** What an organizer does with one click: it runs once, and its answer is where the click was. */
import { say } from "../../../app.js";
import { reason } from "../../../bookings.js";
import { run, sendUntilAnswered } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, icon } from "../../../parts.js";
import { hasText, t } from "../../../text.js";
import { whenOf } from "./localtime.js";

/** How often a request is sent without an answer, before that is said. */
const ATTEMPTS = 5;
let created = 0;

/**
 * Send a mutation until there is an answer. A result with a `code` did not work.
 * @param {string} name of an operation with one field
 * @param {Record<string, any>} variables
 * @returns {Promise<any>}
 */
export async function answer(name, variables) {
  let attempts = 0;
  let trouble = "OFFLINE";
  try {
    const result = await sendUntilAnswered(async () => Object.values(await run(name, variables))[0], {
      isWanted: () => ++attempts < ATTEMPTS,
      onTrouble: (code) => {
        trouble = code;
      },
    });
    return result ?? { code: trouble };
  } catch (error) {
    if (!(/** @type {any} */ (error).code)) throw error;
    return { code: /** @type {any} */ (error).code };
  }
}

/** Return why something did not work, for an organizer. @param {any} result */
export function why(result) {
  const key = `why.${result.code}`;
  if (result.code === "RESOURCE_TAKEN" && result.other) return taken(result);
  if (hasText(key)) return t(key, result);
  if (hasText(`error.${result.code}`)) return t(`error.${result.code}`);
  return reason(result);
}

/** Return which slot has a room at a time. @param {any} conflict a ResourceTaken */
export function taken(conflict) {
  const { other, resourceName } = conflict;
  const meeting = conflict.meeting ?? conflict.otherMeeting;
  return t("why.RESOURCE_TAKEN", { resource: resourceName, title: other.title, time: whenOf(meeting.startTime, other.timeZone) });
}

/** The actions of a view: at most one runs, and each problem is kept with the key of its action. */
export class Actions {
  number = (created += 1);
  running = "";
  asking = "";
  /** @type {Map<string, any>} */
  problems = new Map();

  /**
   * Run a mutation; returns its result, or null if it did not work, which `problem` then shows.
   * @param {string} key of what was clicked
   * @param {string} name of an operation
   * @param {Record<string, any>} variables
   * @param {string} [said] a text for screen readers once it is done
   */
  async run(key, name, variables, said = "") {
    if (this.running) return null;
    this.running = key;
    this.problems.delete(key);
    redraw();
    try {
      const result = await answer(name, variables);
      if (result.code) {
        this.problems.set(key, result);
        say(why(result));
        return null;
      }
      this.asking = "";
      this.problems.clear();
      if (said) say(said);
      return result;
    } finally {
      this.running = "";
      redraw();
    }
  }

  /** Return a button that shows whether its action runs. @param {string} key @param {string} kind @param {any[]} content @param {() => any} onclick */
  button(key, kind, content, onclick) {
    const isRunning = this.running === key;
    return button(kind, isRunning ? [t("form.sending"), ...content.slice(1)] : content, () => !this.running && onclick(), { "aria-disabled": isRunning && "true", "data-key": `button ${key}` });
  }

  /**
   * Return a button that asks once before it acts.
   * @param {string} key
   * @param {any[]} content of the button
   * @param {string} question
   * @param {string} label of the button that does it
   * @param {() => any} action
   * @param {string} [kind] of the button
   */
  askingButton(key, content, question, label, action, kind = "final") {
    if (this.asking !== key) {
      return button(kind, content, () => {
        this.asking = key;
        this.problems.delete(key);
        redraw();
        requestAnimationFrame(() => document.getElementById(`asking${this.number}`)?.focus());
      }, { "data-key": `ask ${key}` });
    }
    const keep = () => {
      this.asking = "";
      redraw();
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="ask ${key}"]`))?.focus());
    };
    return h(
      "div",
      { class: "notice stop asking", "data-key": `asking ${key}`, role: "group", "aria-labelledby": `asking${this.number}-question` },
      icon("warning"),
      h("p", { id: `asking${this.number}-question` }, question),
      h("div", { class: "row" }, button("second", t("form.keep"), keep, { id: `asking${this.number}` }), this.button(key, "final", [label], action)),
      this.problem(key),
    );
  }

  /** Return why the action of a key did not work. @param {string} key */
  problem(key) {
    const result = this.problems.get(key);
    return result && h("p", { class: "error", "data-key": `problem ${key}` }, icon("warning"), h("span", null, why(result)));
  }
}
