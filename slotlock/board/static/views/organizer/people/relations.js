// @ts-check
/** The guardians of a person, such as parents, or the children: who belongs together is up to the organizers. */
import { run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { icon, section, whose } from "../../../parts.js";
import { commas, t } from "../../../text.js";
import { userPicker } from "../userpicker.js";
import { Actions } from "../forms/actions.js";
import { Form } from "../forms/form.js";
import { groupField, groupsIn } from "../forms/groups.js";
import { about, toggleButton, userLink } from "../parts.js";

const MOST_GUARDIANS = 2;

/** @param {() => any} userOf returns whom the page is about @param {() => Promise<void>} reload reads the user again */
export function relations(userOf, reload) {
  let user = userOf();
  const actions = new Actions();
  /** Whom somebody searches: "guardians", "children", or a new child with "new". */
  let adding = "";
  let done = "";
  let form = newForm();
  const picker = userPicker((found) => (found.id === user.id ? [] : [
    actions.button(`add ${found.id}`, "second", [t(adding === "children" ? "people.addChild" : "people.addGuardian"), whose(found.name)], () => add(found)),
    actions.problem(`add ${found.id}`),
  ]));

  function newForm() {
    return new Form("people", { name: "", groups: "" });
  }

  /** @param {any[] | null} [people] */
  const idsOf = (people) => (people ?? []).map((each) => each.id);

  /** Note what was done, and show it. @param {string} name */
  async function finish(name) {
    done = t("people.relationSaved", { name });
    adding = "";
    picker.clear();
    await reload();
  }

  /** Give a person other guardians. @param {string} key @param {string} userId @param {string[]} guardianIds @param {string} name */
  async function save(key, userId, guardianIds, name) {
    done = "";
    if (await actions.run(key, "updateUser", { input: { userId, guardianIds } }, t("people.relationSaved", { name }))) await finish(name);
  }

  /** @param {any} found */
  async function add(found) {
    const key = `add ${found.id}`;
    if (adding === "guardians") return save(key, user.id, [...idsOf(user.guardians), found.id], found.name);
    const { node } = await run("user", { id: found.id }).catch(() => ({ node: null }));
    if (node) await save(key, found.id, [...idsOf(node.guardians), user.id], found.name);
  }

  async function create() {
    const name = form.text("name", true) ?? "";
    if (!(await form.send("createUser", () => ({ input: { name, groups: groupsIn(form.values.groups), guardianIds: [user.id] } })))) return;
    form = newForm();
    await finish(name);
  }

  /** @param {string} part */
  const toggle = (part) => () => {
    adding = adding === part ? "" : part;
    picker.clear();
    redraw();
    const id = part === "new" ? form.id("name") : "user-search";
    if (adding) requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(id)?.focus()));
  };

  /** @param {any} other @param {() => any} remove */
  function row(other, remove) {
    const label = t("people.removeOf", other);
    return h(
      "li",
      { "data-key": other.id },
      about(userLink(other, h("strong", null, other.name)), [other.email ?? other.username, commas(other.groups ?? [])]),
      h("div", { class: "row" }, actions.askingButton(`remove ${other.id}`, [label], t("people.removeOfAsk", other), label, remove, "plain")),
    );
  }

  /** @param {"guardians" | "children"} part @param {any[]} rows @param {any[]} more */
  function group(part, rows, more) {
    return section(`part-${part}`, t(`people.part.${part}`), [
      h("p", { class: "soft" }, t(`people.${part}Help`)),
      rows.length > 0 && h("ul", { class: "frame list" }, rows),
      h("div", { class: "row" }, more),
      adding === part && picker.render(),
    ], { kind: "sheet stack form" });
  }

  function guardians() {
    const remove = (/** @type {any} */ { id, name }) => save(`remove ${id}`, user.id, idsOf(user.guardians).filter((each) => each !== id), name);
    return group("guardians", user.guardians.map((/** @type {any} */ each) => row(each, () => remove(each))), [
      user.guardians.length < MOST_GUARDIANS && toggleButton(t("people.findGuardian"), adding === "guardians", toggle("guardians")),
    ]);
  }

  function children() {
    const remove = (/** @type {any} */ { id, name, guardians: all }) => save(`remove ${id}`, id, idsOf(all).filter((each) => each !== user.id), name);
    return [
      group("children", user.dependents.map((/** @type {any} */ each) => row(each, () => remove(each))), [
        toggleButton(t("people.findChild"), adding === "children", toggle("children")),
        toggleButton(t("people.newChild"), adding === "new", toggle("new")),
      ]),
      adding === "new" && form.render(t("people.newChild"), [
        h("p", { class: "soft" }, t("people.newChildHelp")),
        h("div", { class: "pair" }, form.field("name", { label: t("signin.name"), autocomplete: "off" }), groupField(form, "groups")),
      ], { submit: t("people.createChild"), onsubmit: create, oncancel: toggle("new") }),
    ];
  }

  return {
    render() {
      user = userOf();
      const isChild = user.guardians?.length > 0;
      return [
        done && h("p", { class: "row good", role: "status" }, icon("tick"), h("span", null, done)),
        (isChild || (user.role === "MEMBER" && !user.dependents?.length)) && user.guardians && guardians(),
        !isChild && user.dependents && children(),
        user.leadsSlots && h("p", null, icon("list"), " ", t("people.leads")),
      ];
    },
  };
}
