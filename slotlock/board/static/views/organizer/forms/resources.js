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

/** The fields of forms for teachers, and for other resources. @type {import("./form.js").Field[]} */
export const RESOURCES = [
  { name: "teachers", sent: "", from: ({ resources: all = [] }) => all.filter(isTeacher), show: resourceField },
  {
    name: "resources",
    sent: "resourceIds",
    from: ({ resources: all = [] }) => all.filter((/** @type {any} */ each) => !isTeacher(each)),
    show: resourceField,
    read: ({ values }) => [...values.resources, ...values.teachers].map((/** @type {any} */ each) => each.id),
  },
];

/** @param {any} resource */
function isTeacher({ kind }) {
  return kind === "STAFF";
}

/**
 * Return what is being typed in a field for resources, and what there is with this name.
 * @param {import("./form.js").Form} form @param {string} name
 */
function typedIn(form, name) {
  const typed = form.text(`${name}Text`) ?? "";
  return { typed, found: resources?.find((each) => isTeacher(each) === (name === "teachers") && each.name.toLowerCase() === typed.toLowerCase()) };
}

/** @param {import("./form.js").Form} form @param {string} name @param {any} resource */
function addResource(form, name, resource) {
  form.set(name, [...form.values[name].filter((/** @type {any} */ each) => each.id !== resource.id), resource]);
  form.set(`${name}Text`, "");
  redraw();
}

/** Create what is typed, and add it. @param {import("./form.js").Form} form @param {string} name */
async function createResource(form, name) {
  const kind = name === "teachers" ? "STAFF" : form.values.resourceKind ?? "ROOM";
  const result = await answer("importResources", { names: [typedIn(form, name).typed], kind, dryRun: false });
  if (result.code) form.fail(name, why(result));
  else addResource(form, name, [...result.created, ...result.existing][0]);
  await loadResources();
}

/** Add what is typed and was not added, also if nothing has that name yet, unless it resembles another one. @param {import("./form.js").Form} form */
export async function addTyped(form) {
  const { compare } = new Intl.Collator(undefined, { numeric: true, sensitivity: "base", ignorePunctuation: true });
  for (const { name } of RESOURCES) {
    const { typed, found } = typedIn(form, name);
    if (found) addResource(form, name, found);
    else if (resources?.some((each) => !compare(each.name, typed))) form.fail(name, t("slotForm.resourceOpen"));
    else if (typed) await createResource(form, name);
  }
}

/**
 * Return the field of a form for `teachers` or other `resources`, a list of `{id, name}`.
 * @param {import("./form.js").Form} form @param {{name: string}} field
 */
export function resourceField(form, { name }) {
  const ofTeachers = name === "teachers";
  const chosen = form.values[name];
  const { typed, found } = typedIn(form, name);
  const id = form.id(`${name}Text`);
  const help = t(ofTeachers ? "slotForm.teachersHelp" : "slotForm.resourcesHelp");
  return h(
    "div",
    { class: "field", "data-key": id },
    h("label", { for: id }, t(ofTeachers ? "slotForm.teachers" : "slotForm.resources")),
    h(
      "div",
      { class: "stack tight" },
      chosen.length > 0 && h("ul", { class: "row" }, chosen.map((/** @type {any} */ each) =>
        h("li", { "data-key": each.id }, button("second", [each.name, h("span", { "aria-hidden": "true" }, "×")], () => {
          form.set(name, chosen.filter((/** @type {any} */ other) => other.id !== each.id));
          redraw();
        }, { "aria-label": `${each.name}${t("whose", { name: t("form.remove") })}` })))),
      chosen.length < MOST_SHOWN && input(form.values[`${name}Text`], {
        id, name: `${name}Text`, list: `${id}-list`, autocomplete: "off",
        ...form.described(name, help),
        oninput: (/** @type {any} */ event) => {
          form.set(`${name}Text`, event.target.value);
          const { found: exact } = typedIn(form, name);
          if (exact && event.inputType !== "insertText" && event.inputType !== "deleteContentBackward") addResource(form, name, exact);
          redraw();
        },
        onkeydown: (/** @type {any} */ event) => {
          if (event.key !== "Enter" || !typed) return;
          event.preventDefault();
          if (found) addResource(form, name, found);
          else if (ofTeachers) createResource(form, name);
        },
      }),
      h("datalist", { id: `${id}-list` }, (resources ?? []).filter((each) => isTeacher(each) === ofTeachers).map((each) =>
        h("option", { value: each.name, "data-key": each.id }))),
      typed && found && h("p", { "data-key": "add" }, button("second", t("slotForm.addResource", { name: found.name }), () => addResource(form, name, found))),
      typed && !found && resources && h("div", { class: "row", "data-key": "create" },
        !ofTeachers && input(form.values.resourceKind ?? "ROOM", {
          class: "input fit",
          options: kindOptions().filter(([kind]) => kind !== "STAFF"),
          "aria-label": t("resources.kind"),
          onchange: (/** @type {any} */ event) => form.set("resourceKind", event.target.value),
        }),
        button("second", t("slotForm.createResource", { name: typed }), () => createResource(form, name))),
    ),
    h("p", { class: "small soft", id: `${form.id(name)}-help` }, help),
    form.error(name),
  );
}
