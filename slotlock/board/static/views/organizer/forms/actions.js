// @ts-check
/** What an organizer does with one click: it runs once, and its answer is where the click was. */
import { say } from "../../../page.js";
import { reason } from "../../../bookings.js";
import { codeOf, me, run, sendUntilAnswered } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, icon } from "../../../parts.js";
import { t } from "../../../text.js";
import { whenOf } from "./localtime.js";

/** How often a request is sent without an answer, before that is said. */
const ATTEMPTS = 5;
/** So often it is asked whether a ticket is decided. */
const TICKET_MS = 1000;

/**
 * Send a mutation, or a query about a campaign, until there is an answer. A result with a `code` did not work.
 * @param {string} name of an operation with one field
 * @param {Record<string, any>} variables
 * @param {string} [owner] the id of the user who began what it is a part of
 * @returns {Promise<any>}
 */
export async function answer(name, variables, owner) {
  let attempts = 0;
  let trouble = "OFFLINE";
  try {
    const result = await sendUntilAnswered(async () => Object.values(await run(name, variables, owner))[0] ?? { code: "CAMPAIGN_NOT_FOUND" }, {
      isWanted: () => ++attempts < ATTEMPTS,
      onTrouble: (code) => {
        trouble = code;
      },
    });
    return result ?? { code: trouble };
  } catch (caught) {
    return { code: codeOf(caught) };
  }
}

/** Book by the queue, which leaders need and organizers do not. @param {any} variables @param {string} [owner] @returns {Promise<any>} the outcome */
async function outcomeOf(variables, owner) {
  let ticket = await answer("requestBooking", variables, owner);
  while (ticket.status === "QUEUED") {
    await new Promise((resolve) => setTimeout(resolve, TICKET_MS));
    ticket = await answer("ticket", { id: ticket.id }, owner);
  }
  return ticket.outcome ?? { code: "QUEUE_FULL", ...ticket };
}

/** Return why something did not work, for an organizer. @param {any} result */
export function why(result) {
  if (result.text) return result.text;
  if (result.code === "RESOURCE_TAKEN" && result.other) return taken(result);
  return t(`why.${result.code}`, result, t(`error.${result.code}`, {}, reason(result)));
}

/** Return which slot has a room at a time. @param {any} conflict a ResourceTaken */
export function taken(conflict) {
  const { other, resourceName } = conflict;
  const meeting = conflict.meeting ?? conflict.otherMeeting;
  return t("why.RESOURCE_TAKEN", { resource: resourceName, title: other.title, time: whenOf(meeting.startTime, other.timeZone) });
}

/** Focus an element once it is drawn. @param {string} key @param {string} [inside] what to focus in it */
export function focusKey(key, inside = "") {
  requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="${key}"]${inside}`))?.focus());
}

/** Focus an element once the page is drawn, if the button that was clicked is gone. @param {string} [id] */
export function focusAfter(id = "main") {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (document.activeElement === document.body) document.getElementById(id)?.focus({ preventScroll: true });
  }));
}

/** The actions of a view: at most one runs, and each problem is kept with the key of its action. */
export class Actions {
  owner = me?.id;
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
      let result = await answer(name, variables, this.owner);
      if (result.code === "QUEUE_ONLY" && name === "bookSlot") result = await outcomeOf(variables, this.owner);
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
    return button(kind, isRunning ? [t("signin.sending"), ...content.slice(1)] : content, () => !this.running && onclick(), {
      "aria-disabled": isRunning && "true",
      "data-key": `button ${key}`,
    });
  }

  /**
   * Return a button that asks once before it acts.
   * @param {string} key
   * @param {any[]} content of the button
   * @param {string} question
   * @param {string} label of the button that does it
   * @param {() => any} action
   * @param {string} [kind] of the button
   * @param {any} [more] to enter before
   */
  askingButton(key, content, question, label, action, kind = "final", more = null) {
    /** @param {string} asking @param {string} next the key of what gets the focus */
    const ask = (asking, next) => () => {
      this.asking = asking;
      this.problems.delete(key);
      redraw();
      focusKey(next);
    };
    if (this.asking !== key) return button(kind, content, ask(key, `keep ${key}`), { "data-key": `ask ${key}` });
    return h(
      "div",
      { class: "notice stop asking", "data-key": `asking ${key}`, role: "group", "aria-label": question },
      icon("warning"),
      h("p", null, question),
      more,
      h(
        "div",
        { class: "row" },
        button("second", t("form.keep"), ask("", `ask ${key}`), { "data-key": `keep ${key}` }),
        this.button(key, "final", [label], action),
      ),
      this.problem(key),
    );
  }

  /** Return why the action of a key did not work. @param {string} key */
  problem(key) {
    const result = this.problems.get(key);
    return result && h("p", { class: "error", "data-key": `problem ${key}` }, icon("warning"), h("span", null, why(result)));
  }
}
