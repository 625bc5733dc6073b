// @ts-check
/** How far the invitations by mail of the last day are, and whom they did not reach. */
import { now } from "../../../clock.js";
import { codeOf, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { notice } from "../../../parts.js";
import { number, t } from "../../../text.js";
import { DAY_MS } from "../forms/localtime.js";

const READ_PROGRESS_AGAIN_MS = 2000;
/** More are not counted, and not shown. */
const MOST_MAILS = 1000;
const SHOWN_MAILS = 50;
/** Of a mail. */
export const STATES = ["QUEUED", "SENDING", "SENT", "FAILED", "SUPPRESSED"];

export class MailProgress {
  /** The first mails of each state. @type {Record<string, any> | null} */
  data = null;
  /** @type {any} */
  timer;
  isLeft = false;

  async load() {
    clearTimeout(this.timer);
    try {
      const since = new Date(now() - DAY_MS).toISOString();
      const found = await Promise.all(STATES.map((state) => run("outbox", { filter: { kind: "invitation", state, since }, first: SHOWN_MAILS })));
      this.data = Object.fromEntries(found.map(({ outbox }, index) => [STATES[index], outbox]));
    } catch (caught) {
      codeOf(caught); // any other error is one of the page
    }
    if (this.isLeft) return;
    if (this.data && this.count("QUEUED", "SENDING")) this.timer = setTimeout(() => this.load(), READ_PROGRESS_AGAIN_MS);
    redraw();
  }

  /** @param {...string} states */
  count(...states) {
    return states.reduce((sum, state) => sum + (this.data?.[state].totalCount ?? MOST_MAILS), 0);
  }

  render() {
    if (!this.data) return null;
    const [sent, open, missed] = [this.count("SENT"), this.count("QUEUED", "SENDING"), this.count("FAILED", "SUPPRESSED")];
    if (!sent && !open && !missed) return null;
    const parts = [t("people.mailsSent", { count: sent, shown: number(sent) }), open > 0 && t("people.mailsOpen", { count: open, shown: number(open) })];
    const rows = [...this.data.FAILED.nodes, ...this.data.SUPPRESSED.nodes].map((each) =>
      h("li", { "data-key": each.id }, h("p", null, each.user && h("a", { href: `#/people/${each.user.id}` }, each.user.name), h("br"), h("span", { class: "small soft" }, [each.recipient, each.note].filter(Boolean).join(" · ")))));
    return h(
      "section",
      { class: "stack", "aria-labelledby": "progress", "data-key": "progress" },
      h("h2", { id: "progress" }, t("people.lastDay")),
      h("p", { role: "status" }, parts.filter(Boolean).join(" · ")),
      missed > 0 && notice("stop", "warning", t("people.mailsMissed", { count: missed, shown: number(missed) })),
      missed > 0 && h("ul", { class: "frame list" }, rows),
    );
  }

  leave() {
    this.isLeft = true;
    clearTimeout(this.timer);
  }
}
