// @ts-check
/** Write to everybody who has a place, or to everybody without one: a form that says how many get the mail, and asks before it is sent. */
import { say, site } from "../../../page.js";
import { codeOf, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { icon, notice, whose } from "../../../parts.js";
import { asSentence, sentences, t } from "../../../text.js";
import { toggleButton } from "../parts.js";
import { Form } from "./form.js";

/**
 * @param {{slotId: string} | {campaignId: string, unplaced?: boolean}} audience all with a place there, or all without one
 * @param {boolean} [isLed] whether a leader writes, who has no right to write to those who wait
 */
export function announcer(audience, isLed = false) {
  const isOfUnplaced = "unplaced" in audience;
  const hasWaiting = !isOfUnplaced && !isLed;
  const title = () => t(isOfUnplaced ? "announce.unplaced" : "announce.title");
  /** @type {any} */
  let form = null;
  /** How many get it: those with a place, and together with those who wait. @type {number[]} */
  let counts = [];
  /** The key of the form when it asked: it asks again once something was changed. */
  let askedKey = "";
  let sent = "";

  function toggle() {
    form = form ? null : new Form("announce", { subject: "", text: "", includeWaiting: false }).keep(Object.values(audience).join(" "));
    sent = "";
    redraw();
    if (!form) return;
    form.values.includeWaiting &&= hasWaiting; // what was typed elsewhere
    read();
    form.focusFirst();
  }

  async function read() {
    counts = [];
    try {
      const found = await Promise.all([false, hasWaiting].map((includeWaiting) => run("announcementRecipients", { ...audience, includeWaiting })));
      counts = found.map((each) => each.announcementRecipientCount);
    } catch (caught) {
      codeOf(caught); // the form works without counts
    }
    redraw();
  }

  /** @returns {number | undefined} */
  const count = () => counts[Number(form.values.includeWaiting)];

  /** Ask, or send what was asked about. */
  async function submit() {
    if (askedKey !== form.key) {
      for (const name of ["subject", "text"]) form.text(name, true);
      if (Object.keys(form.errors).length) return form.showErrors();
      askedKey = form.key;
      say(question());
      return redraw();
    }
    const { includeWaiting } = form.values;
    const input = { ...audience, subject: form.text("subject"), text: form.text("text"), includeWaiting, idempotencyKey: form.key };
    const result = await form.send("sendAnnouncement", () => ({ input }));
    if (!result) return;
    form.forget();
    form = null;
    sent = input.subject + t("whose", { name: t("announce.sent", { count: result.recipientCount }) });
    say(sent);
    redraw();
  }

  /** Say who gets what. */
  function question() {
    const ask = t(count() === undefined ? "announce.questionAll" : "announce.question", { count: count() });
    return sentences([asSentence(title() + t("whose", { name: form.text("subject") })), ask]);
  }

  function fields() {
    const onset = () => {
      askedKey = "";
    };
    return [
      form.field("subject", { required: true, maxlength: 200, onset }),
      form.field("text", { tag: "textarea", rows: 6, required: true, maxlength: 5000, onset }),
      hasWaiting && form.check("includeWaiting"),
      h(
        "p",
        null,
        h("strong", null, count() === undefined ? "…" : t("announce.count", { count: count() })),
        h("br"),
        h("span", { class: "small soft" }, t("announce.countHelp")),
      ),
    ];
  }

  return {
    /** Return the button that opens the form; nothing on a site without mail. @param {any} [label] @param {string} [about] the course */
    button: (label = title(), about = "") => site.sendsMail && toggleButton([label, about && whose(about)], form, toggle),
    render() {
      if (sent) return notice("yours", "tick", sent);
      if (!form) return null;
      const isAsking = askedKey === form.key;
      return form.render(title(), fields(), {
        submit: t(isAsking ? "announce.send" : "announce.next"),
        onsubmit: submit,
        oncancel: toggle,
        more: isAsking && h("div", { class: "notice wait" }, icon("warning"), h("p", null, question())),
      });
    },
  };
}
