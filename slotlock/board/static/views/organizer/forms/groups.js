// @ts-check
/** The groups that users have: a form offers them with their counts, and says which of those typed nobody has. */
import { codeOf, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button, checkbox, icon } from "../../../parts.js";
import { readAll } from "../../../store.js";
import { language, number, t } from "../../../text.js";

/** How many users have a group, by its name; null until it was read. @type {Map<string, number> | null} */
let counts = null;
/** For what it was read last. @type {any} */
let reader = null;

/** Read the groups, once for each form or view. @param {any} of */
export async function readGroups(of) {
  if (reader === of) return;
  reader = of;
  try {
    const groups = await readAll("userGroups", {}, "userGroups");
    counts = new Map((groups ?? []).map((each) => [each.name, each.userCount]));
  } catch (caught) {
    codeOf(caught); // the form works without counts
  }
  redraw();
}

/** Return the groups of a campaign as a text; of several lists of them those of the first, of which everybody has one. @param {string} id */
export async function groupsOfCampaign(id) {
  const { campaign } = await run("campaign", { id });
  return (campaign?.eligibleGroups[0] ?? []).join(", ");
}

/** Return those of these groups that nobody has; of a limit as 7*, whose beginning no group has. @param {string[]} names */
export function groupsOfNobody(names) {
  const known = [...(counts ?? [])].map(([name]) => name);
  return counts ? names.filter((name) => !(name.endsWith("*") ? known.some((each) => each.startsWith(name.slice(0, -1))) : counts?.has(name))) : [];
}

/** Return the groups in a text. @param {string} text @returns {string[]} */
export function groupsIn(text) {
  return text.split(/[,;\n]/).map((each) => each.trim()).filter(Boolean);
}

/** Return a field for groups with those that exist, to choose. @param {any} form @param {string} name @param {Record<string, any>} [attributes] */
export function groupField(form, name, attributes = {}) {
  readGroups(form);
  const text = form.values[name];
  const chosen = groupsIn(text);
  const isTyping = document.activeElement?.id === form.id(name) && !/[,;\n]\s*$/.test(text);
  /** @param {string} changed */
  const set = (changed) => form.set(name, changed);
  /** @param {string} group @param {string} [other] */
  const without = (group, other = "") =>
    text.split("\n").map((/** @type {string} */ line) => {
      const names = groupsIn(line).map((each) => (each === group ? other : each));
      return [...new Set(names)].filter(Boolean).join(", ");
    }).join("\n");
  return [
    form.field(name, { autocomplete: "off", onset: () => null, onblur: redraw, ...attributes }),
    unknownGroups(isTyping ? chosen.slice(0, -1) : chosen, (group, other) => set(without(group, other))),
    Boolean(counts?.size) && h(
      "fieldset",
      { class: "chips", "data-key": `${form.id(name)}-groups` },
      h("legend", { class: "vh" }, t("groups.choose")),
      sorted().map(([group, count]) =>
        checkbox("chip", `${group} · ${number(count)}`, { checked: chosen.includes(group) }, (isChecked) =>
          set(isChecked ? text.replace(/[,;\s]*$/, chosen.length ? `, ${group}` : group) : without(group)))),
    ),
  ];
}

/** Return a field of a form for a list of groups. @param {string} name @returns {import("./form.js").Field} */
export const groupsField = (name) => ({
  name,
  show: (form) => groupField(form, name),
  from: (found) => (found[name] ?? []).join(", "),
  read: ({ values }) => groupsIn(values[name]),
});

/** Return the names of all groups, for the fields of the page that have them as their `list`. */
export function groupList() {
  return h("datalist", { id: "groups" }, sorted().map(([group]) => h("option", { value: group })));
}

/** Say which groups nobody has, and which were perhaps meant. @param {string[]} names @param {(group: string, other: string) => void} replace */
export function unknownGroups(names, replace) {
  const { compare: alike } = new Intl.Collator(language, { numeric: true, sensitivity: "base", ignorePunctuation: true });
  return groupsOfNobody(names).map((group) => {
    const other = sorted().find(([each]) => alike(each, group) === 0);
    return h(
      "p",
      { class: "error", "data-key": `nobody ${group}` },
      icon("warning"),
      h("span", null, t("groups.nobody", { group })),
      other && button("plain", t("groups.take", { group: other[0], count: other[1], shown: number(other[1]) }), () => {
        replace(group, other[0]);
        redraw();
      }),
    );
  });
}

function sorted() {
  const { compare } = new Intl.Collator(language, { numeric: true });
  return [...(counts ?? [])].sort(([one], [other]) => compare(one, other));
}
