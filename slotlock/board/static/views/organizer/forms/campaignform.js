// @ts-check
/** The settings of a campaign as a form. */
import { site } from "../../../page.js";
import { Form } from "./form.js";
import { groupField, groupsField, groupsIn } from "./groups.js";
import { GROUP_LIMITS, QUEUE_ONLY } from "./limits.js";
import { isPast } from "./localtime.js";

/** @type {import("./form.js").Field[]} */
const CAMPAIGN_FIELDS = [
  { name: "name", required: true, maxlength: 200 },
  { name: "description", tag: "textarea", rows: 3 },
  { name: "mailNote", tag: "textarea", rows: 3, maxlength: 1000, ofMail: true },
  { name: "opensAt", kind: "time", required: true },
  { name: "closesAt", kind: "time", required: true },
  { name: "cancelUntil", kind: "time" },
  {
    name: "eligibleGroups",
    show: (form, { name }) => groupField(form, name, { tag: "textarea", rows: 2 }),
    from: ({ eligibleGroups = [] }) => eligibleGroups.map((/** @type {string[]} */ set) => set.join(", ")).join("\n"),
    read: ({ values }) => values.eligibleGroups.split("\n").map(groupsIn).filter((/** @type {string[]} */ set) => set.length),
  },
  { name: "maxBookings", kind: "count", min: 1 },
  { name: "forbidOverlap", kind: "check", default: true },
  { name: "requireVerifiedEmail", kind: "check", default: false, ofMail: true },
  { name: "reminderMinutes", kind: "duration", ofMail: true },
  { name: "openingMailHours", kind: "count", ofMail: true },
  QUEUE_ONLY,
  groupsField("leaderGroups"),
  ...GROUP_LIMITS,
  { name: "noShowCount", kind: "count", min: 1, sent: "noShowLimit", from: ({ noShowLimit }) => noShowLimit?.count, read: readNoShows },
  { name: "noShowDays", kind: "count", min: 1, sent: "", from: ({ noShowLimit }) => noShowLimit?.days },
  { name: "allowPast", kind: "check", default: false },
];

/** Return the form of a campaign, or of a new one. @param {any} campaign or null @param {string} timeZone of its times */
export function campaignForm(campaign, timeZone) {
  return new Form("campaignForm", { timeZone }, CAMPAIGN_FIELDS, campaign);
}

/** Return the fields. @param {Form} form */
export function campaignFields(form) {
  return [
    form.show("name", "description", ["opensAt", "closesAt"]),
    (isPast(form.values.closesAt, form.zone) || form.values.allowPast) && form.check("allowPast"),
    form.show("eligibleGroups", ["maxBookings", "groupLimitsEach"], "forbidOverlap"),
    form.more(
      [form.label("ofPlaces"), "isQueueOnly", "requireVerifiedEmail", "groupLimits", "leaderGroups"],
      [form.label("ofReturns"), "cancelUntil", ["noShowCount", "noShowDays"]],
      (site.sendsMail || form.values.mailNote) && [form.label("ofMails"), "mailNote", ["reminderMinutes", "openingMailHours"]],
    ),
  ];
}

/** @param {Form} form */
function readNoShows(form) {
  const count = form.integer("noShowCount", Boolean(form.text("noShowDays")));
  const days = form.integer("noShowDays", count !== null);
  return count !== null && days !== null ? { count, days } : null;
}
