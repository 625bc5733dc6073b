// @ts-check
/** Rooms, people and devices of the school: import their names, see and delete them. */
import { h, redraw } from "../../kernel.js";
import { button, whose } from "../../parts.js";
import { t } from "../../text.js";
import { Actions, focusAfter } from "./forms/actions.js";
import { Form } from "./forms/form.js";
import { kindOptions, loadResources, resources } from "./forms/resources.js";
import { toggleButton } from "./parts.js";
import { userPicker } from "./userpicker.js";

export function openResources() {
  let form = newForm();
  const actions = new Actions();
  /** What an import would do, and for which names. @type {any} */
  let preview = null;
  loadResources();
  /** The resource that is changed, and its form. @type {{id: string, form: Form} | null} */
  let changed = null;
  /** The id of the one whose leader is chosen. */
  let led = "";
  const picker = userPicker((user) => [
    actions.button(`lead ${user.id}`, "second", [t("resources.choose"), whose(user.name)], () => setLeader(user)),
    actions.problem(`lead ${user.id}`),
  ]);

  function newForm() {
    return new Form("resources", { names: "", kind: "ROOM" });
  }

  async function submit() {
    const names = form.values.names.split("\n").map((/** @type {string} */ each) => each.trim()).filter(Boolean);
    const isChecked = preview?.key === form.key;
    const key = form.key;
    const result = await form.send("importResources", () => {
      if (!names.length) form.missing("names");
      return { names, kind: form.values.kind, dryRun: !isChecked };
    });
    if (!result) return;
    preview = isChecked ? null : { ...result, key };
    if (isChecked) {
      form = newForm();
      await loadResources();
    }
    redraw();
  }

  /** @param {any} resource */
  function change(resource) {
    changed = changed?.id === resource.id ? null : { id: resource.id, form: new Form("resources", { name: resource.name, kind: resource.kind }) };
    redraw();
    changed?.form.focusFirst();
  }

  /** @param {any} resource */
  async function save(resource) {
    const current = changed?.form;
    const { name, kind } = current?.values ?? {};
    if (!(await current?.send("updateResource", () => ({ input: { resourceId: resource.id, kind, ...(name !== resource.name && { name }) } })))) return;
    changed = null;
    await loadResources();
  }

  /** @param {any} resource */
  function changeForm(resource) {
    const current = /** @type {Form} */ (changed?.form);
    const fields = [h("div", { class: "columns" }, current.field("name"), current.select("kind", kindOptions()))];
    return h(
      "div",
      { class: "whole" },
      current.render(t("holidays.change", { name: resource.name }), fields, { onsubmit: () => save(resource), oncancel: () => change(resource) }),
    );
  }

  /** @param {string} id */
  function toggleLeader(id) {
    led = led === id ? "" : id;
    picker.clear();
    if (led) requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("user-search")?.focus()));
  }

  /** Let a person lead the courses of a teacher, or nobody, with an empty id. @param {{id: string, name?: string}} user */
  async function setLeader(user) {
    const variables = { input: { resourceId: led, leaderId: user.id || null } };
    if (!(await actions.run(`lead ${user.id}`, "updateResource", variables, t(user.id ? "resources.ledBy" : "resources.ledByNobody", user)))) return;
    toggleLeader("");
    await loadResources();
    focusAfter();
  }

  /** @param {any} resource */
  function leaderChoice({ name, leader }) {
    return h(
      "div",
      { class: "whole stack" },
      h("p", { class: "soft" }, t("resources.leaderHelp", { name })),
      picker.render(),
      leader && actions.button("lead ", "plain", [t("resources.endLead"), whose(leader.name)], () => setLeader({ id: "" })),
      actions.problem("lead "),
    );
  }

  async function remove(/** @type {any} */ resource) {
    if (await actions.run(resource.id, "deleteResource", { id: resource.id }, t("resources.deleted", { name: resource.name }))) await loadResources();
  }

  function render() {
    const isChecked = preview?.key === form.key;
    const fields = [
      form.field("names", { tag: "textarea", rows: 4, onset: () => null }),
      form.select("kind", kindOptions()),
    ];
    const more = isChecked && h("p", { role: "status" }, t("resources.preview", { count: preview.created.length, existing: preview.existing.length }));
    return [
      h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
      h("h1", null, t("slotForm.resources")),
      form.render(t("resources.import"), fields, { submit: isChecked ? t("resources.submit") : t("copy.check"), onsubmit: submit, more }),
      resources && h("ul", { class: "frame list" }, resources.map((each) => {
        const name = () => whose(each.name);
        const isChanged = changed?.id === each.id;
        return h(
          "li",
          { "data-key": each.id },
          h("p", null, each.name, " ", h("span", { class: "soft" }, t(`resources.${each.kind}`), each.leader && ` · ${t("resources.ledBy", each.leader)}`)),
          h(
            "div",
            { class: "row" },
            each.kind === "STAFF" && toggleButton([t("resources.leader"), name()], led === each.id, () => toggleLeader(each.id), "plain"),
            toggleButton([t("course.edit"), name()], isChanged, () => change(each), "plain"),
            button("plain", [t("form.delete"), name()], () => remove(each)),
          ),
          actions.problem(each.id),
          isChanged && changeForm(each),
          led === each.id && leaderChoice(each),
        );
      })),
    ];
  }

  return { title: () => t("slotForm.resources"), width: /** @type {"wide"} */ ("wide"), render };
}
