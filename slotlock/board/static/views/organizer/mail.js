// @ts-check
/** The mails of the site: what was sent to whom, and what each kind says. */
import { say } from "../../app.js";
import { codeOf, me, run } from "../../client.js";
import { h, list, redraw } from "../../kernel.js";
import { bones, button, failure, field, notice } from "../../parts.js";
import { LANGUAGES, deviceZone, language, t } from "../../text.js";
import { Actions } from "./forms/actions.js";
import { whenOf } from "./forms/localtime.js";
import { STATES } from "./people/progress.js";

const MAIL_PAGE = 50;
/** What waits is read again after this time. */
const READ_MAIL_AGAIN_MS = 5000;
const TAGS = /** @type {Record<string, string>} */ ({ QUEUED: "wait", SENDING: "wait", SENT: "yours", FAILED: "stop", SUPPRESSED: "over" });

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

/** @param {string} about the id of a slot or a user, or "" */
function openMails(about) {
  /** @type {any[] | null} */
  let entries = null;
  let state = "";
  let after = "";
  let error = "";
  let reads = 0;
  let retried = "";
  /** @type {any} */
  let timer;
  const actions = new Actions();

  const chosen = () => ({
    channel: "MAIL",
    state: state || null,
    slotId: about.startsWith("slot_") ? about : null,
    userId: about.startsWith("user_") ? about : null,
  });

  /** @param {boolean} [isMore] whether to add the next page */
  async function load(isMore = false) {
    clearTimeout(timer);
    const read = (reads += 1);
    try {
      const { outbox } = await run("outbox", { filter: chosen(), first: MAIL_PAGE, after: isMore ? after : null });
      if (read !== reads) return;
      entries = isMore ? [...(entries ?? []), ...outbox.nodes] : outbox.nodes;
      after = outbox.pageInfo.hasNextPage ? outbox.pageInfo.endCursor : "";
      error = "";
      if (!isMore && outbox.nodes.some(isOpen)) timer = setTimeout(load, READ_MAIL_AGAIN_MS);
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  load();

  /** @param {any} entry */
  async function retry(entry) {
    if (await actions.run(entry.id, "retryOutboxEntry", { id: entry.id }, t("mail.retried"))) await load();
  }

  /** Send all that failed, and that the filter finds. */
  async function retryAll() {
    const result = await actions.run("all", "retryFailedOutboxEntries", { filter: chosen() });
    if (!result) return;
    retried = t("mail.retriedAll", { count: result.count });
    say(retried);
    await load();
  }

  /** The button for all that failed, while these are shown. */
  function retryPart() {
    const canRetry = state === "FAILED" && me?.role === "ADMIN" && entries?.some((entry) => entry.canRetry);
    return canRetry && h("p", { "data-key": "all" }, actions.button("all", "second", [t("mail.retryAll")], retryAll));
  }

  /** @param {any} entry */
  function row(entry) {
    const { user, slot } = entry;
    const time = entry.doneAt ?? entry.at;
    const to = [user ? h("a", { href: `#/people/${user.id}` }, user.name) : "", entry.recipient].filter(Boolean);
    return h(
      "li",
      { "data-key": entry.id },
      h("p", null,
        h("strong", null, kindOf(entry.kind)), slot && [" · ", h("a", { href: `#/course/${slot.id}` }, slot.title)], h("br"),
        h("span", { class: "small soft" }, to.flatMap((each, number) => (number ? [" · ", each] : [each]))),
        entry.note && entry.state !== "SENT" && [h("br"), h("span", { class: "small" }, entry.note)]),
      h("span", { class: "row" },
        h("time", { class: "small soft", datetime: time }, whenOf(time, deviceZone)),
        h("span", { class: `tag ${TAGS[entry.state]}` }, t(`mail.state.${entry.state}`)),
        entry.canRetry && me?.role === "ADMIN" && actions.button(entry.id, "second", [t("mail.retry")], () => retry(entry))),
      actions.problem(entry.id),
    );
  }

  function heading() {
    const [first] = entries ?? [];
    if (!about || !first) return null;
    const subject = about.startsWith("slot_") ? first.slot && h("a", { href: `#/course/${about}` }, first.slot.title) : first.user && h("a", { href: `#/people/${about}` }, first.user.name);
    return subject && h("p", null, t("mail.only"), " ", subject, " · ", h("a", { href: "#/mail" }, t("mail.all")));
  }

  const choose = (/** @type {any} */ event) => {
    state = event.target.value;
    retried = "";
    load();
  };
  return {
    title: () => t("mail.title"),
    width: /** @type {"wide"} */ ("wide"),
    render: () => [
      ...head("mail.title", "mail.texts", "#/mail/texts"),
      heading(),
      h("p", { class: "soft" }, t("mail.help")),
      h("p", { class: "row" }, h("label", { for: "state" }, t("mail.state")), h("select", { class: "input fit", id: "state", onchange: choose }, ["", ...STATES].map((each) => h("option", { value: each, selected: each === state }, t(each ? `mail.state.${each}` : "mail.anyState"))))),
      retryPart(),
      actions.problem("all"),
      retried && notice("yours", "tick", retried),
      error && failure(error, () => load()),
      entries ? (entries.length ? list("ul", { class: "frame list" }, entries.map((entry) => ({ key: entry.id, signature: JSON.stringify([entry, actions.running === entry.id, actions.problems.has(entry.id)]), build: () => row(entry) }))) : notice("", "list", t("mail.none"))) : !error && bones(5),
      entries && after && h("p", null, button("second", t("people.more"), () => load(true))),
    ],
    leave: () => {
      reads += 1;
      clearTimeout(timer);
    },
  };
}

/** Whether an entry will change by itself. @param {any} entry */
function isOpen(entry) {
  return entry.state === "QUEUED" || entry.state === "SENDING";
}

/** @param {string | undefined} campaign whose next course the mails are about */
function openTexts(campaign) {
  /** @type {any[] | null} */
  let previews = null;
  let error = "";
  let kind = "booked";
  let locale = language;

  async function load() {
    const wanted = locale;
    try {
      const found = await run("mailPreviews", { locale: wanted, id: campaign || null });
      if (wanted !== locale) return;
      previews = found.mailPreviews;
      error = "";
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  load();

  /** Return the text. The policy of this page forbids the styles of the HTML, which says the same. @param {any} preview */
  function mail(preview) {
    return h(
      "article",
      { class: "sheet stack", "aria-labelledby": "subject", lang: locale },
      h("h2", { id: "subject" }, preview.subject),
      preview.text.trim().split("\n\n").map((/** @type {string} */ paragraph) => h("p", { class: "text" }, paragraph)),
    );
  }

  function render() {
    const shown = previews?.find((each) => each.kind === kind);
    const kinds = (previews ?? []).map((each) => h("option", { value: each.kind, selected: each.kind === kind }, kindOf(each.kind)));
    const languages = Object.entries(LANGUAGES).map(([value, text]) => h("option", { value, selected: value === locale }, text));
    return [
      ...head("mail.texts", "mail.title", "#/mail"),
      h("p", { class: "soft" }, t(campaign ? "mail.textsOf" : "mail.textsHelp")),
      previews && h("div", { class: "pair" },
        field("kind", t("mail.kind"), { tag: "select", children: kinds, onchange: (/** @type {any} */ event) => {
          kind = event.target.value;
          redraw();
        } }),
        field("locale", t("mail.language"), { tag: "select", children: languages, onchange: (/** @type {any} */ event) => {
          locale = event.target.value;
          load();
        } })),
      error && failure(error, load),
      shown ? mail(shown) : !error && bones(4),
    ];
  }

  return { title: () => t("mail.texts"), render };
}
