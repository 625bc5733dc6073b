// @ts-check
/** Who did what with a course, or with the places of a person, newest first. */
import { run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button } from "../../../parts.js";
import { commas, deviceZone, durationOf, t, timeOf } from "../../../text.js";
import { whenOf } from "../forms/localtime.js";
import { toggleButton } from "../parts.js";

const HISTORY_PAGE = 20;
const MOST_LETTERS = 60;
const MOST_MEETINGS = 3;
/** What happens to the places of a person; an account has other actions. */
export const PLACE_ACTIONS = [
  ..."BOOKED HELD PROMOTED OFFERED CONFIRMED EXTENDED MOVED CANCELLED EXPIRED".split(" "),
  ..."CHECKED_IN CHECK_IN_UNDONE NO_SHOW NO_SHOW_UNDONE WAITLIST_JOINED WAITLIST_LEFT".split(" "),
];
/** What the action says already, in the entry of a course or a campaign. */
const SAID = ["status", "published"];
/** The fields whose values have a text of their own, by its beginning. @type {Record<string, string>} */
const VALUES = { kind: "slotForm.", admission: "history.value.", method: "draw.", state: "draw.state." };
const FLAGS = ["forbidOverlap", "requireVerifiedEmail", "showsDemand", "joinsWaitlists"];

/** @param {any} filter of the audit log @param {boolean} [isOfPerson] who is named by the page, and not by each entry */
export function historyOf(filter, isOfPerson = false) {
  /** @type {any[]} */
  let entries = [];
  let after = "";
  let isOpen = false;

  async function load() {
    if (isOpen) await read(null);
  }

  /** @param {string | null} from */
  async function read(from) {
    const { auditLog } = await run("slotLog", { filter, first: HISTORY_PAGE, after: from });
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
    const limits = entry.overriddenRefusals.map((/** @type {string} */ each) => t(`passed.${each}`, {}, each));
    const subject = isOfPerson ? entry.action !== "MOVED" && entry.slot?.title : entry.user?.name;
    const text = [actionText(entry, isOfPerson), subject, by, ...limits, ...editTexts(entry)].filter(Boolean).join(" · ");
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
        toggleButton(t(isOpen ? "news.hide" : "history.show"), isOpen, toggle, "plain"),
      ),
      isOpen && h("ol", { class: "log long" }, withoutHalves(entries).map(row)),
      isOpen && after && h("p", null, button("second", t("history.more"), () => read(after))),
    );
  }

  return { load, render };
}

/** Leave out that a booking ended by a move, where the entry of the new one says from where. @param {any[]} entries */
export function withoutHalves(entries) {
  const moves = new Set(entries.filter((each) => each.movedFrom).map((each) => `${each.at} ${each.user?.id}`));
  return entries.filter((each) => !each.movedTo || !moves.has(`${each.at} ${each.user?.id}`));
}

/** Return what happened; a move has a direction. @param {any} entry @param {boolean} isOfPerson */
function actionText({ action, movedFrom, movedTo, slot, by, user }, isOfPerson) {
  const [from, to] = [movedFrom ?? (movedTo && slot), movedTo ?? (movedFrom && slot)].map((each) => each?.title ?? "");
  if (isOfPerson && from) return t("history.moved", { from, to });
  if (movedFrom) return t("history.movedFrom", { from });
  if (movedTo) return t("history.movedTo", { to });
  // What a course had ends with it.
  if (action === "CANCELLED" && by && slot?.status !== "CANCELLED") return t(by.id === user?.id ? "history.givenBack" : "place.taken");
  return t(`history.${action}`, {}, action);
}

/** Return what an entry of the audit log changed, in words: each thing once, and not what its action says. @param {any} entry @returns {string[]} */
export function editTexts({ action, edits }) {
  if (/_(CREATED|DELETED)$/.test(action)) return [];
  const fields = new Set(edits.map((/** @type {any} */ each) => each.field));
  /** @param {any} edit */
  const isTwice = ({ field }) => fields.has("meetings") && /^(start|end)Time$/.test(field);
  return edits.filter((/** @type {any} */ each) => !SAID.includes(each.field) && !isTwice(each)).map(editText);
}

/** @param {any} edit of a course, a campaign or a draw */
function editText({ field, before, after }) {
  const other = t(`campaignForm.${field}`, {}, t(`draw.${field}`, {}, field));
  const name = t(`history.field.${field}`, {}, t(`slotForm.${field}`, {}, other));
  return t("history.edit", { field: name, before: valueOf(field, before), after: valueOf(field, after) });
}

/** Return a value of an edit; times are stored in UTC, and values of a list as texts. @param {string} field @param {string | null} value */
function valueOf(field, value) {
  if (!value) return "–";
  if (field.endsWith("Minutes")) return durationOf(Number(value));
  if (FLAGS.includes(field)) return t(`history.value.${value}`);
  if (VALUES[field]) return t(VALUES[field] + value, {}, value);
  if (field === "meetings") return meetingsText(value.split(", "));
  const [, count, days] = /^(\d+) no-shows, (\d+) days$/.exec(value) ?? [];
  if (field === "noShowLimit" && count) return t("history.value.noShowLimit", { count, days });
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return whenOf(value, deviceZone);
  const plain = field === "description" ? value.replace(/[*_\x60#]+/g, "") : value;
  return plain.length > MOST_LETTERS ? `${plain.slice(0, MOST_LETTERS)}…` : plain;
}

/** @param {string[]} meetings each its start and its end, as 2031-05-05T09:00:00.000Z/2031-05-05T10:00:00.000Z */
function meetingsText(meetings) {
  const shown = meetings.slice(0, meetings.length > MOST_MEETINGS ? 1 : MOST_MEETINGS).map((each) => each.split("/"));
  const times = shown.map(([start, end]) => `${whenOf(start, deviceZone)}–${timeOf(end, deviceZone)}`);
  // The first of many says whether the times are others.
  return commas(meetings.length > MOST_MEETINGS ? [t("slot.meetings", { count: meetings.length }), ...times] : times);
}
