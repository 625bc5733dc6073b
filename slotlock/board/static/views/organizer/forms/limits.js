// @ts-check
/** Limits of groups in words: "at most 5 from each group". */
import { t } from "../../../text.js";

/** Return the limits by group, each in words. @param {Array<{group: string, limit: number}>} limits */
export function limitTexts(limits) {
  return limits.map(({ group, limit: count }) => {
    if (group === "*") return t("limits.each", { count });
    return group.endsWith("*") ? t("limits.beginning", { count, group: group.slice(0, -1) }) : t("limits.one", { count, group });
  });
}
