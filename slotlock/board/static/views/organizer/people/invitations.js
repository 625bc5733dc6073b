// @ts-check
/** Links with which people set their first password. */
import { codeOf, me, onSession, run } from "../../../client.js";
import { site } from "../../../page.js";
import { h, list, redraw } from "../../../kernel.js";
import { button, checkbox, field, notice, saveFile } from "../../../parts.js";
import { compareNames, errorText, number, t } from "../../../text.js";
import { messageOf, post, readCsv, saveCsv } from "../files.js";
import { groupsOfCampaign } from "../forms/groups.js";
import { about } from "../parts.js";
import { back, codePage, copied, copyButton, invitationLink, validUntil } from "./parts.js";
import { mailProgress } from "./progress.js";

/** The links that were created last: nobody can read them a second time. @type {Record<string, string>[] | null} */
let invitations = null;
/** The same as a file, from which the server makes letters. */
let file = "";
onSession(() => {
  if (!me) invitations = null;
});

/** Compare two people by their groups, and then by their family names. @param {Record<string, string>} a @param {Record<string, string>} b */
function byClass(a, b) {
  return compareNames(a.groups, b.groups) || compareNames(a.family_name || a.name, b.family_name || b.name);
}

/** @param {string} campaignId whose people are invited, as long as nobody types other groups; "" for all */
export function openInvitations(campaignId) {
  let groups = "";
  let error = "";
  let groupError = "";
  let isSending = false;
  let wantsMail = true;
  /** What the mail says. @type {{subject: string, text: string} | null} */
  let mail = null;
  let isMailShown = false;
  const progress = mailProgress();
  const byMail = () => Boolean(site.sendsMail) && wantsMail;
  if (campaignId) readCampaign();

  async function readCampaign() {
    try {
      groups = await groupsOfCampaign(campaignId);
    } catch (caught) {
      error = errorText(codeOf(caught));
    }
    redraw();
  }

  /** @param {any} event */
  async function submit(event) {
    event.preventDefault();
    if (isSending) return;
    const group = groups.trim();
    isSending = true;
    error = groupError = "";
    redraw();
    try {
      const { ok, status, text } = await post(`/users/invitations?separator=comma&mail=${byMail()}${group && `&group=${encodeURIComponent(group)}`}`);
      if (ok) {
        invitations = readCsv(text).sort(byClass);
        file = text;
        progress.load();
      } else if (status === 400) groupError = messageOf(text);
      else error = messageOf(text);
    } catch (caught) {
      error = errorText(codeOf(caught));
    }
    isSending = false;
    redraw();
  }

  function save() {
    const rows = (invitations ?? []).filter((each) => each.token).map((each) => [
      each.name,
      each.email || each.username,
      each.groups,
      invitationLink(each.token),
      each.token,
      validUntil(each.expires_at),
    ]);
    saveCsv(`${t("people.invitationsFile")}.csv`, [["name", "login", "groups", "link", "code", "expires"].map((each) => t(`csv.${each}`)), ...rows]);
  }

  async function print() {
    if (isSending) return;
    isSending = true;
    error = "";
    redraw();
    try {
      const { ok, text, content } = await post(`/users/letters?page=${encodeURIComponent(`${codePage()}/`)}`, new Blob([file]));
      if (ok) saveFile(`${t("people.lettersFile")}.pdf`, content);
      else error = messageOf(text);
    } catch (caught) {
      error = errorText(codeOf(caught));
    }
    isSending = false;
    redraw();
  }

  /** @param {any} event */
  async function showMail({ target }) {
    isMailShown = target.open;
    if (!isMailShown || mail) return;
    try {
      mail = (await run("mailPreviews", {})).mailPreviews.find((/** @type {any} */ each) => each.kind === "invitation");
    } catch (caught) {
      error = errorText(codeOf(caught));
    }
    redraw();
  }

  function links() {
    if (!invitations) return null;
    if (!invitations.length) return notice("yours", "tick", t(byMail() ? "people.allInvited" : "people.allHavePasswords"));
    const shown = invitations.filter((each) => each.token);
    const mailed = invitations.length - shown.length;
    return [
      mailed > 0 && notice("yours", "tick", t("people.mailed", { count: mailed, shown: number(mailed) })),
      shown.length > 0 && [
        h("h2", null, t("people.linkCount", { count: shown.length, shown: number(shown.length) })),
        notice("wait", "warning", t("people.linksOnce", { until: validUntil(shown[0].expires_at) })),
        h("p", { class: "row" }, button("", t("people.letters"), print), button("second", t("csv.save"), save)),
        list("ul", { class: "frame list" }, shown.map((each) => {
          const link = invitationLink(each.token);
          const facts = [each.email || each.username, each.groups, each.token];
          const build = () => h("li", null, about(h("strong", null, each.name), facts), copyButton(link, each.name));
          return { key: link, signature: String(copied === link), build };
        })),
      ],
    ];
  }

  return {
    title: () => t("people.invitations"),
    render: () => [
      back(),
      h("h1", null, t("people.invitations")),
      h("p", { class: "soft" }, t("people.invitationsHelp")),
      h(
        "form",
        { class: "sheet stack", onsubmit: submit, novalidate: true },
        field("group", t("people.onlyGroup"), { autocomplete: "off", value: groups, "data-controlled": true, oninput: (/** @type {any} */ typed) => {
          groups = typed.target.value;
        } }, groupError),
        site.sendsMail && checkbox("check", t("people.byMail"), { checked: wantsMail }, (isChecked) => (wantsMail = isChecked)),
        byMail() && h(
          "details",
          { open: isMailShown, ontoggle: showMail },
          h("summary", null, t("people.mailPreview")),
          mail && h("div", { class: "stack" }, h("p", null, h("strong", null, mail.subject)), h("p", { class: "text" }, mail.text)),
        ),
        h(
          "p",
          null,
          h(
            "button",
            { class: "btn", "aria-disabled": isSending && "true" },
            t(isSending ? "people.creating" : byMail() ? "people.sendInvitations" : "people.createLinks"),
          ),
        ),
      ),
      error && notice("stop", "warning", error),
      links(),
      progress.render(),
    ],
    leave: progress.leave,
  };
}
