// @ts-check
/** Parts of the views of people: links to copy, tags. */
import { h, redraw } from "../../../kernel.js";
import { button, icon, whose } from "../../../parts.js";
import { dayOf, deviceZone, t } from "../../../text.js";
import { DAY_MS } from "../forms/localtime.js";

/** What was done on the page of a person who is gone, for the list of people. */
export const news = { text: "" };

/** Return the way back to the list, or to those of a campaign who have no place. @param {string} [campaignId] */
export function back(campaignId) {
  return h("p", null, campaignId
    ? h("a", { href: `#/monitor/${campaignId}` }, t("monitor.unplaced"))
    : h("a", { href: "#/people" }, t("people.backToList")));
}

/** Return what is unusual about an account. @param {any} user */
export function personTags(user) {
  return [
    user.role !== "MEMBER" && h("span", { class: "tag" }, t(`role.${user.role}`)),
    user.erased && h("span", { class: "tag over" }, t("people.erased")),
    // A child without a login name needs no password.
    !user.erased && !hasSignedIn(user) && (user.email ?? user.username) && h("span", { class: "tag wait" }, t("people.noPassword")),
    user.selfRegistered && h("span", { class: "tag wait" }, t("people.selfRegistered")),
    user.emailUndeliverableSince && h("span", { class: "tag stop" }, icon("warning"), t("people.undeliverable")),
    user.banned && h("span", { class: "tag stop" }, icon("lock"), t("people.banned")),
  ];
}

/** Return whether somebody has set a password or signed in at a provider. @param {any} user */
export function hasSignedIn(user) {
  return user.hasPassword || user.signsInAtProvider;
}

/** Return the link that a person opens. @param {string} token */
export function invitationLink(token) {
  return `${location.origin}/board#/invitation/${token}`;
}

/** The address of the page where a code is typed. */
export const codePage = () => `${location.origin}/board#/code`;

/** Return until when an invitation is valid: its last whole day. @param {string} expiresAt */
export function validUntil(expiresAt) {
  return dayOf(new Date(Date.parse(expiresAt) - DAY_MS), deviceZone);
}

/** Return a link to copy. @param {string} label @param {string} link @param {string} note */
export function linkField(label, link, note) {
  return h(
    "div",
    { class: "field", "data-key": link },
    h("label", { for: "link" }, label),
    h(
      "div",
      { class: "row" },
      h("input", { class: "input grow", id: "link", readonly: true, value: link, onfocus: (/** @type {any} */ event) => event.target.select() }),
      copyButton(link, ""),
    ),
    h("p", { class: "small soft" }, note),
  );
}

/** The link that was copied last. */
export let copied = "";

/** @param {string} link @param {string} name whose link it is */
export function copyButton(link, name) {
  return button("second", [t(copied === link ? "feed.copied" : "feed.copy"), name && whose(name)], async () => {
    await navigator.clipboard?.writeText(link).then(() => (copied = link), () => null);
    redraw();
  });
}
