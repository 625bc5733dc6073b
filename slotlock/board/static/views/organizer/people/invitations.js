// @ts-check
/** Links with which people set their first password. */
import { codeOf, me, onSession } from "../../../client.js";
import { site } from "../../../app.js";
import { h, list, redraw } from "../../../kernel.js";
import { button, field, notice } from "../../../parts.js";
import { dayOf, deviceZone, errorText, number, t } from "../../../text.js";
import { post, readCsv, saveCsv } from "../files.js";
import { back, copied, copyButton, invitationLink, messageOf } from "./parts.js";
import { MailProgress } from "./progress.js";

/** The links that were created last: nobody can read them a second time. @type {Record<string, string>[] | null} */
let invitations = null;
onSession(() => {
  if (!me) invitations = null;
});

export function openInvitations() {
  let error = "";
  let groupError = "";
  let isSending = false;
  let wantsMail = true;
  const progress = new MailProgress();
  progress.load();
  const byMail = () => Boolean(site.sendsMail) && wantsMail;

  /** @param {any} event */
  async function submit(event) {
    event.preventDefault();
    if (isSending) return;
    const given = new FormData(event.target);
    const group = String(given.get("group")).trim();
    isSending = true;
    error = groupError = "";
    redraw();
    try {
      const { ok, status, text } = await post(`/users/invitations?separator=comma&mail=${byMail()}${group && `&group=${encodeURIComponent(group)}`}`);
      if (ok) invitations = readCsv(text);
      if (ok) progress.load();
      else if (status === 400) groupError = messageOf(text);
      else error = messageOf(text);
    } catch (caught) {
      error = errorText(codeOf(caught));
    }
    isSending = false;
    redraw();
  }

  function save() {
    const rows = (invitations ?? []).filter((each) => each.token).map((each) => [each.name, each.email || each.username, each.groups, invitationLink(each.token), each.expires_at]);
    saveCsv(`${t("people.invitationsFile")}.csv`, [["name", "login", "groups", "link", "expires"].map((each) => t(`csv.${each}`)), ...rows]);
  }

  function links() {
    if (!invitations) return [];
    if (!invitations.length) return [notice("yours", "tick", t(byMail() ? "people.allInvited" : "people.allHavePasswords"))];
    const until = dayOf(invitations[0].expires_at, deviceZone);
    const shown = invitations.filter((each) => each.token);
    const mailed = invitations.length - shown.length;
    const sent = mailed > 0 && notice("yours", "tick", t("people.mailed", { count: mailed, shown: number(mailed) }));
    if (!shown.length) return [sent];
    return [
      sent,
      h("h2", null, t("people.linkCount", { count: shown.length, shown: number(shown.length) })),
      notice("wait", "warning", t("people.linksOnce", { until }), button("", t("people.saveLinks"), save)),
      list("ul", { class: "frame list" }, shown.map((each) => ({
        key: each.token,
        signature: String(copied === invitationLink(each.token)),
        build: () => h("li", null, h("p", null, h("strong", null, each.name), h("br"), h("span", { class: "small soft" }, [each.email || each.username, each.groups].filter(Boolean).join(" · "))), copyButton(invitationLink(each.token), each.name)),
      }))),
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
        field("group", t("people.onlyGroup"), { autocomplete: "off" }, groupError),
        site.sendsMail && h("label", { class: "check" }, h("input", { type: "checkbox", name: "mail", checked: wantsMail, onchange: (/** @type {any} */ event) => {
          wantsMail = event.target.checked;
          redraw();
        } }), t("people.byMail")),
        h("p", null, h("button", { class: "btn", "aria-disabled": isSending && "true" }, t(isSending ? "people.creating" : byMail() ? "people.sendInvitations" : "people.createLinks"))),
      ),
      error && notice("stop", "warning", error),
      ...links(),
      progress.render(),
    ],
    leave: () => progress.leave(),
  };
}
