// @ts-check
/** Who did what with a course, newest first. */
import { run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button } from "../../../parts.js";
import { deviceZone, durationOf, t } from "../../../text.js";
import { whenOf } from "../forms/localtime.js";
import { toggleButton } from "../parts.js";

const HISTORY_PAGE = 20;

/** @param {string} slotId */
export function slotHistory(slotId) {
  /** @type {any[]} */
  let entries = [];
  let after = "";
  let isOpen = false;

  async function load() {
    if (isOpen) await read(null);
  }

  /** @param {string | null} from */
  async function read(from) {
    const { auditLog } = await run("slotLog", { slot: slotId, first: HISTORY_PAGE, after: from });
    entries = from ? [...entries, ...auditLog.nodes] : auditLog.nodes;
    after = auditLog.pageInfo.hasNextPage ? auditLog.pageInfo.endCursor : "";
    redraw();
  }

  function toggle() {
    isOpen = !isOpen;
    redraw();
    load();
  }

  /** @param {any} entry */
  function row(entry) {
    const by = entry.by && entry.by.id !== entry.user?.id && t("roster.by", { name: entry.by.name });
    const isNew = entry.action === "SLOT_CREATED" || entry.action === "SLOT_DELETED";
    const edits = (isNew ? [] : entry.edits).map(editText);
    const limits = entry.overriddenRefusals.map((/** @type {string} */ each) => t(`passed.${each}`, {}, each));
    const text = [t(`history.${entry.action}`, {}, entry.action), entry.user?.name, by, ...limits, ...edits].filter(Boolean).join(" · ");
    return h("li", null, h("time", { datetime: entry.at }, whenOf(entry.at, deviceZone)), h("span", null, text));
  }

  function render() {
    return h(
      "section",
      { class: "stack", "data-key": "history", "aria-labelledby": "history" },
      h(
        "div",
        { class: "row" },
        h("h2", { id: "history" }, t("history.title")),
        toggleButton(t(isOpen ? "history.hide" : "history.show"), isOpen, toggle, "plain"),
      ),
      isOpen && h("ol", { class: "log long" }, entries.map(row)),
      isOpen && after && h("p", null, button("second", t("history.more"), () => read(after))),
    );
  }

  return { load, render };
}

/** Return an edit in words, of a course or a campaign. @param {any} edit */
export function editText({ field, before, after }) {
  return t("history.edit", {
    field: t(`slotForm.${field}`, {}, t(`campaignForm.${field}`, {}, field)),
    before: valueOf(field, before),
    after: valueOf(field, after),
  });
}

/** Return a value of an edit; times are stored in UTC. @param {string} field @param {string | null} value */
function valueOf(field, value) {
  if (!value) return "–";
  if (field.endsWith("Minutes")) return durationOf(Number(value));
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d.*Z$/.test(value) ? whenOf(value, deviceZone) : value;
}
