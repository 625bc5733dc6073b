// @ts-check
/** Fields that courses and campaigns have, and limits of groups in words, as "at most 5 from each group". */
import { t } from "../../../text.js";
import { redraw } from "../../../kernel.js";
import { COUNT, isWhole } from "./form.js";
import { groupList, readGroups, unknownGroups } from "./groups.js";

/** How members get places; only draws change it of a campaign that has one. @type {import("./form.js").Field} */
export const QUEUE_ONLY = {
  name: "isQueueOnly",
  kind: "check",
  sent: "admission",
  help: "campaignForm.isQueueOnlyHelp",
  from: ({ admission }) => admission === "QUEUE_ONLY",
  read: ({ values, object }) => (object.admission === "DRAW" ? undefined : values.isQueueOnly ? "QUEUE_ONLY" : "ANY"),
};
/** The limit of each group, which stands where people look for the class limit, and those of others. @type {import("./form.js").Field[]} */
export const GROUP_LIMITS = [
  {
    name: "groupLimitsEach",
    kind: "count",
    sent: "",
    label: "form.limitOfEach",
    help: "form.limitOfEachHelp",
    from: ({ groupLimits = [] }) => groupLimits.find((/** @type {any} */ each) => each.group === "*")?.limit,
  },
  {
    name: "groupLimits",
    from: ({ groupLimits = [] }) => groupLimits.filter((/** @type {any} */ each) => each.group !== "*").map((/** @type {any} */ each) => ({ ...each })),
    show: (form, { name }) => limitedGroups(form, form.rows(
      name,
      t("form.addLimit"),
      () => ({ group: "", limit: "" }),
      { group: { label: t("form.group"), list: "groups", onchange: redraw }, limit: { ...COUNT, label: t("slot.most") } },
      { label: t("form.groupLimits"), help: t("form.groupLimitsHelp") },
    )),
    read: readLimits,
  },
];

/** Return the rows of limits, and which of their groups nobody has. @param {import("./form.js").Form} form @param {any} rows */
function limitedGroups(form, rows) {
  readGroups(form);
  /** @type {any[]} */
  const limits = form.values.groupLimits;
  const names = limits.map((each) => each.group.trim()).filter(Boolean);
  const replace = (/** @type {string} */ group, /** @type {string} */ other) =>
    form.set("groupLimits", limits.map((each) => (each.group.trim() === group ? { ...each, group: other } : each)));
  return [groupList(), rows, unknownGroups(names, replace)];
}

/** Return the limits by group as the API has them. @param {import("./form.js").Form} form */
function readLimits(form) {
  const each = form.integer("groupLimitsEach", false);
  const others = form.values.groupLimits
    .map((/** @type {any} */ row) => ({ group: row.group.trim(), limit: row.limit === "" ? NaN : Number(row.limit) }))
    .filter((/** @type {any} */ row) => row.group || !Number.isNaN(row.limit));
  if (others.some((/** @type {any} */ row) => !row.group || !isWhole(row.limit))) form.fail("groupLimits", t("form.limitRow"));
  return each === null ? others : [{ group: "*", limit: each }, ...others];
}

/** Return the limits by group, each in words. @param {Array<{group: string, limit: number}>} limits */
export function limitTexts(limits) {
  return limits.map(({ group, limit: count }) => {
    if (group === "*") return t("limits.each", { count });
    return group.endsWith("*") ? t("limits.beginning", { count, group: group.slice(0, -1) }) : t("limits.one", { count, group });
  });
}
