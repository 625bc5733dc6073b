// @ts-check
/** The settings of a campaign as a form. */
import { site } from "../../../page.js";
import { h } from "../../../kernel.js";
import { COUNT, Form } from "./form.js";
import { isPast, toLocal } from "./localtime.js";

/** Return the form of a campaign, or of a new one. @param {any} campaign or null @param {string} zone of its times */
export function campaignForm(campaign, zone) {
  return new Form("campaignForm", {
    forbidOverlap: true,
    requireVerifiedEmail: false,
    ...campaign,
    opensAt: toLocal(campaign?.opensAt, zone),
    closesAt: toLocal(campaign?.closesAt, zone),
    cancelUntil: toLocal(campaign?.cancelUntil, zone),
    eligibleGroups: (campaign?.eligibleGroups ?? []).map((/** @type {string[]} */ set) => set.join(", ")).join("\n"),
    isQueueOnly: campaign?.admission === "QUEUE_ONLY",
    ...Form.limitValues(campaign?.groupLimits),
    noShowCount: campaign?.noShowLimit?.count,
    noShowDays: campaign?.noShowLimit?.days,
    allowPast: false,
  });
}

/** Return the fields. @param {Form} form @param {string} zone */
export function campaignFields(form, zone) {
  const whole = { ...COUNT, min: 1 };
  return [
    form.field("name", { required: true, maxlength: 200 }),
    form.field("description", { tag: "textarea", rows: 3 }),
    h("div", { class: "columns" }, form.time("opensAt", zone, { required: true }), form.time("closesAt", zone, { required: true })),
    (isPast(form.values.closesAt, zone) || form.values.allowPast) && form.check("allowPast"),
    form.field("eligibleGroups", { tag: "textarea", rows: 2 }),
    h("div", { class: "columns" }, form.field("maxBookings", whole), form.limitOfEach()),
    form.check("forbidOverlap"),
    form.more(
      ["cancelUntil", "groupLimits", "noShowCount", "noShowDays", "isQueueOnly", "requireVerifiedEmail", "mailNote", "reminderMinutes", "openingMailHours"],
      [
        form.time("cancelUntil", zone),
        form.check("isQueueOnly"),
        (site.sendsMail || form.values.requireVerifiedEmail) && form.check("requireVerifiedEmail"),
        (site.sendsMail || form.values.mailNote) && form.field("mailNote", { tag: "textarea", rows: 3, maxlength: 1000 }),
        site.sendsMail && h("div", { class: "columns" }, form.duration("reminderMinutes"), form.field("openingMailHours", COUNT)),
        form.limits(),
        h("div", { class: "columns" }, form.field("noShowCount", whole), form.field("noShowDays", whole)),
      ],
    ),
  ];
}

/** Return the input of the API; what is wrong is noted in the form. @param {Form} form @param {string} zone @param {any} [campaign] */
export function campaignInput(form, zone, campaign = null) {
  const { forbidOverlap, requireVerifiedEmail, allowPast } = form.values;
  const count = form.integer("noShowCount", Boolean(form.text("noShowDays")));
  const days = form.integer("noShowDays", count !== null);
  return {
    name: form.text("name", true),
    description: form.text("description"),
    mailNote: form.text("mailNote"),
    opensAt: form.instant("opensAt", zone, campaign?.opensAt),
    closesAt: form.instant("closesAt", zone, campaign?.closesAt),
    cancelUntil: form.text("cancelUntil") && form.instant("cancelUntil", zone, campaign?.cancelUntil),
    eligibleGroups: form.values.eligibleGroups.split("\n").map(groupsOf).filter((/** @type {string[]} */ set) => set.length),
    maxBookings: form.integer("maxBookings", false),
    forbidOverlap,
    requireVerifiedEmail,
    reminderMinutes: form.integer("reminderMinutes", false),
    openingMailHours: form.integer("openingMailHours", false),
    ...(campaign?.admission !== "DRAW" && { admission: form.values.isQueueOnly ? "QUEUE_ONLY" : "ANY" }),
    groupLimits: form.groupLimits(),
    noShowLimit: count !== null && days !== null ? { count, days } : null,
    allowPast,
  };
}

/** @param {string} line @returns {string[]} */
function groupsOf(line) {
  return line.split(",").map((each) => each.trim()).filter(Boolean);
}
