// @ts-check
/** The rooms, people and devices that a slot occupies: a field to choose them, and to create what is missing. */
import { codeOf } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { button } from "../../../parts.js";
import { readAll } from "../../../store.js";
import { compareNames, t } from "../../../text.js";
import { answer, why } from "./actions.js";
import { input } from "./form.js";

const KINDS = ["ROOM", "STAFF", "EQUIPMENT", "OTHER"];
const MOST_SHOWN = 10;

/** All resources by name; null until they are read. @type {any[] | null} */
export let resources = null;

/** Read all resources again. */
export async function loadResources() {
  resources = (await readByName("resources")) ?? resources;
  redraw();
}

/** Return what organizers share by name, or null without a connection. @param {string} name of the operation and of its field */
export async function readByName(name) {
  try {
    return (await readAll(name, {}, name))?.sort((a, b) => compareNames(a.name, b.name)) ?? [];
  } catch (caught) {
    codeOf(caught); // anything but a failed request is an error of the page
    return null;
  }
}

/** Return the choice of a kind. @returns {Array<[string, string]>} */
export function kindOptions() {
  return KINDS.map((kind) => [kind, t(`resources.${kind}`)]);
}

/**
 * Return the field of a form for `resources`, a list of `{id, name}`, with what is being typed in `resourceText`.
 * @param {import("./form.js").Form} form
 */
export function resourceField(form) {
  const chosen = form.values.resources;
  const typed = form.text("resourceText") ?? "";
  const find = (/** @type {string} */ name) => resources?.find((each) => each.name.toLowerCase() === name.toLowerCase());
  const found = find(typed);
  const add = (/** @type {any} */ resource) => {
    form.set("resources", [...chosen.filter((/** @type {any} */ each) => each.id !== resource.id), resource]);
    form.set("resourceText", "");
    redraw();
  };
  const create = async () => {
    const result = await answer("importResources", { names: [typed], kind: form.values.resourceKind ?? "ROOM", dryRun: false });
    if (result.code) form.fail("resources", why(result));
    else add([...result.created, ...result.existing][0]);
    await loadResources();
  };
  const id = form.id("resourceText");
  const help = t("slotForm.resourcesHelp");
  return h(
    "div",
    { class: "field", "data-key": id },
    h("label", { for: id }, t("slotForm.resources")),
    chosen.length > 0 && h("ul", { class: "row" }, chosen.map((/** @type {any} */ each) =>
      h("li", { "data-key": each.id }, button("second", [each.name, h("span", { "aria-hidden": "true" }, "×")], () => {
        form.set("resources", chosen.filter((/** @type {any} */ other) => other.id !== each.id));
        redraw();
      }, { "aria-label": `${each.name}${t("whose", { name: t("form.remove") })}` })))),
    chosen.length < MOST_SHOWN && input(form.values.resourceText, {
      id, name: "resourceText", list: `${id}-list`, autocomplete: "off",
      ...form.described("resources", help),
      oninput: (/** @type {any} */ event) => {
        form.set("resourceText", event.target.value);
        const exact = find(event.target.value);
        if (exact && event.inputType !== "insertText" && event.inputType !== "deleteContentBackward") add(exact);
        redraw();
      },
      onkeydown: (/** @type {any} */ event) => {
        if (event.key !== "Enter" || !typed) return;
        event.preventDefault();
        if (found) add(found);
      },
    }),
    h("datalist", { id: `${id}-list` }, (resources ?? []).map((each) => h("option", { value: each.name, "data-key": each.id }))),
    h("p", { class: "small soft", id: `${form.id("resources")}-help` }, help),
    typed && found && h("p", { "data-key": "add" }, button("second", t("slotForm.addResource", { name: found.name }), () => add(found))),
    typed && !found && resources && h("div", { class: "row", "data-key": "create" },
      input(form.values.resourceKind ?? "ROOM", {
        class: "input fit",
        options: kindOptions(),
        "aria-label": t("resources.kind"),
        onchange: (/** @type {any} */ event) => form.set("resourceKind", event.target.value),
      }),
      button("second", t("slotForm.createResource", { name: typed }), create)),
    form.error("resources"),
  );
}
