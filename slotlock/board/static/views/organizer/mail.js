// @ts-check
/** The mails of the site: what was sent to whom, and what each kind says. */
import { say } from "../../page.js";
import { me, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, failure, notice } from "../../parts.js";
import { readerOf } from "../../store.js";
import { LANGUAGES, deviceZone, language, t } from "../../text.js";
import { Actions } from "./forms/actions.js";
import { whenOf } from "./forms/localtime.js";
import { choice, userLink } from "./parts.js";
import { pages } from "./pages.js";
import { STATES, STATE_TAGS, mailNote } from "./people/progress.js";

const MAIL_PAGE = 50;

/** @param {string} part "", the id of a slot or a user, or "texts" with the id of a campaign */
export function openMail(part) {
  const [name, id] = part.split("/");
  return name === "texts" ? openTexts(id) : openMails(name);
}

/** Return the head of a page, with a link to the other one. @param {string} title @param {string} other @param {string} address */
function head(title, other, address) {
  return [
    h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
    h("div", { class: "row" }, h("h1", null, t(title)), h("a", { class: "btn second push", href: address }, t(other))),
  ];
}

/** @param {string} kind */
const kindOf = (kind) => t(`mail.kind.${kind}`, {}, kind);

/** @param {string} subject the id of a slot or a user, or "" */
function openMails(subject) {
  let state = "";
  let retried = "";
  /** @type {any} */
  let undeliverable = null;
  const actions = new Actions();
  const isAboutSlot = subject.startsWith("slot_");
  const chosen = () => ({ channel: "MAIL", state: state || null, ...(subject && { [isAboutSlot ? "slotId" : "userId"]: subject }) });
  const mails = pages(async (after) => {
    const found = await run("outbox", { filter: chosen(), first: MAIL_PAGE, after });
    undeliverable = found.undeliverableAddresses;
    return found.outbox;
  }, ({ state: each }) => each === "QUEUED" || each === "SENDING");

  /** @param {any} entry */
  async function retry(entry) {
    if (await actions.run(entry.id, "retryOutboxEntry", { id: entry.id }, t("mail.retried"))) await mails.load();
  }

  /** Send all that was not sent, and that the filter finds. */
  async function retryAll() {
    const result = await actions.run("all", "retryFailedOutboxEntries", { filter: chosen() });
    if (!result) return;
    retried = t("mail.retriedAll", { count: result.count });
    say(retried);
    await mails.load();
  }

  const canRetry = (/** @type {any} */ entry) => entry.canRetry && me?.role === "ADMIN";

  /** @param {any} entry */
  function build(entry) {
    const { user, slot } = entry;
    const children = entry.dependents.map((/** @type {any} */ each) => [" · ", userLink(each)]);
    const time = entry.doneAt ?? entry.at;
    return h(
      "li",
      { "data-key": entry.id },
      h("p", null,
        h("strong", null, kindOf(entry.kind)), slot && [" · ", slotLink(slot)], h("br"),
        h("span", { class: "small soft" }, user && userLink(user), children, user && entry.recipient && " · ", entry.recipient),
        mailNote(entry) && [h("br"), h("span", { class: "small" }, mailNote(entry))]),
      h("span", { class: "row" },
        h("time", { class: "small soft", datetime: time }, whenOf(time, deviceZone)),
        h("span", { class: `tag ${STATE_TAGS[entry.state]}` }, t(`mail.state.${entry.state}`)),
        canRetry(entry) && actions.button(entry.id, "second", [t("mail.retry")], () => retry(entry))),
      actions.problem(entry.id),
    );
  }

  function heading() {
    const { slot, user: reader, dependents } = mails.nodes()?.[0] ?? {};
    const user = [reader, ...dependents ?? []].find((each) => each?.id === subject);
    const link = subject && (isAboutSlot ? slot && slotLink(slot) : user && userLink(user));
    return link && h("p", null, t("mail.only"), " ", link, " · ", h("a", { href: "#/mail" }, t("mail.all")));
  }

  return {
    title: () => t("mail.title"),
    width: /** @type {"wide"} */ ("wide"),
    render: () => [
      ...head("mail.title", "mail.texts", "#/mail/texts"),
      heading(),
      h("p", { class: "soft" }, t("mail.help")),
      !!undeliverable?.count && notice(
        "stop",
        "warning",
        t("mail.undeliverable", {
          count: undeliverable.count,
          first: whenOf(undeliverable.firstAt, deviceZone),
          last: whenOf(undeliverable.lastAt, deviceZone),
        }),
      ),
      h(
        "div",
        { class: "pair" },
        choice("state", t("mail.state"), ["", ...STATES].map((each) => [each, t(each ? `mail.state.${each}` : "mail.anyState")]), state, (value) => {
          state = value;
          retried = "";
          mails.load();
        }),
      ),
      ["FAILED", "SUPPRESSED"].includes(state) && mails.nodes()?.some(canRetry) && h(
        "p",
        { "data-key": "all" },
        actions.button("all", "second", [t("mail.retryAll")], retryAll),
      ),
      actions.problem("all"),
      retried && notice("yours", "tick", retried),
      mails.render(
        (entry) => ({
          key: entry.id,
          signature: JSON.stringify([entry, actions.running === entry.id, actions.problems.has(entry.id)]),
          build: () => build(entry),
        }),
        notice("", "list", t("mail.none")),
      ),
    ],
    leave: mails.leave,
  };
}

/** @param {any} slot */
function slotLink({ id, title }) {
  return h("a", { href: `#/course/${id}` }, title);
}

/**
 * Return the text of a mail. The policy of this page forbids the styles of the HTML, which says the same.
 * @param {any} preview @param {string} lang
 */
export function mailText(preview, lang) {
  return h(
    "article",
    { class: "sheet stack", "aria-labelledby": "subject", lang },
    h("h2", { id: "subject" }, preview.subject),
    preview.text.trim().split("\n\n").map((/** @type {string} */ paragraph) => h("p", { class: "text" }, paragraph)),
  );
}

/** @param {string | undefined} campaign whose next course the mails are about */
function openTexts(campaign) {
  /** @type {any[] | null} */
  let previews = null;
  let kind = "booked";
  let locale = language;

  const load = readerOf(async () => {
    previews = (await run("mailPreviews", { locale, id: campaign || null })).mailPreviews;
  });
  load();

  function render() {
    const shown = previews?.find((each) => each.kind === kind);
    return [
      ...head("mail.texts", "mail.title", "#/mail"),
      h("p", { class: "soft" }, t(campaign ? "mail.textsOf" : "mail.textsHelp")),
      previews && h("div", { class: "pair" },
        choice("kind", t("mail.kind"), previews.map((each) => [each.kind, kindOf(each.kind)]), kind, (value) => (kind = value)),
        choice("locale", t("account.language"), Object.entries(LANGUAGES), locale, (value) => {
          locale = value;
          load();
        })),
      load.error && failure(load.error, load),
      shown ? mailText(shown, locale) : !load.error && bones(4),
    ];
  }

  return { title: () => t("mail.texts"), render };
}
