// @ts-check
/** How far the invitations by mail of the last day are, and whom they did not reach. */
import { now } from "../../../clock.js";
import { codeOf, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { notice } from "../../../parts.js";
import { number, t } from "../../../text.js";
import { DAY_MS } from "../forms/localtime.js";
import { about, userLink } from "../parts.js";

const READ_PROGRESS_AGAIN_MS = 2000;
/** More are not counted, and not shown. */
const MOST_MAILS = 1000;
const SHOWN_MAILS = 50;
/** The kinds of tags of the states of a mail or a message. @type {Record<string, string>} */
export const STATE_TAGS = { QUEUED: "wait", SENDING: "wait", SENT: "yours", FAILED: "stop", SUPPRESSED: "over" };
export const STATES = Object.keys(STATE_TAGS);

export function mailProgress() {
  /** The first mails of each state. @type {any[]} */
  let found = [];
  /** @type {any} */
  let timer;
  let isLeft = false;

  async function load() {
    clearTimeout(timer);
    try {
      const since = new Date(now() - DAY_MS).toISOString();
      found = await Promise.all(STATES.map(async (state) => (await run("outbox", {
        filter: { kind: "invitation", state, since },
        first: SHOWN_MAILS,
      })).outbox));
    } catch (caught) {
      codeOf(caught); // any other error is one of the page
    }
    if (isLeft) return;
    if (counts()[1]) timer = setTimeout(load, READ_PROGRESS_AGAIN_MS);
    redraw();
  }
  load();

  /** Return how many were sent, are on their way, and did not reach anybody. */
  function counts() {
    const [queued, sending, sent, failed, suppressed] = found.map((each) => each.totalCount ?? MOST_MAILS);
    return [sent, queued + sending, failed + suppressed];
  }

  function render() {
    const [sent, open, missed] = counts();
    if (!sent && !open && !missed) return null;
    const parts = [t("people.mailsSent", { count: sent, shown: number(sent) }), open > 0 && t("people.mailsOpen", { count: open, shown: number(open) })];
    const rows = [...found[3].nodes, ...found[4].nodes].map((each) => h(
      "li",
      { "data-key": each.id },
      about(each.user && userLink(each.user), [each.recipient, mailNote(each)]),
    ));
    return h(
      "section",
      { class: "stack", "aria-labelledby": "progress", "data-key": "progress" },
      h("h2", { id: "progress" }, t("people.lastDay")),
      h("p", { role: "status" }, parts.filter(Boolean).join(" · ")),
      missed > 0 && [notice("stop", "warning", t("people.mailsMissed", { count: missed, shown: number(missed) })), h("ul", { class: "frame list" }, rows)],
    );
  }

  function leave() {
    isLeft = true;
    clearTimeout(timer);
  }

  return { load, render, leave };
}

/** Return why a mail is not sent, in words for the reasons of slotlock, or the response of another server. @param {any} entry of the outbox */
export function mailNote({ state, note }) {
  return state === "SENT" || !note ? "" : t(`mail.note.${note}`, {}, note);
}
