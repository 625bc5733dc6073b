// @ts-check
/** Inputs outside of forms, which act at once. */
import { h, redraw } from "../../kernel.js";
import { field } from "../../parts.js";

/** Return a checkbox with its label. @param {"check" | "chip"} kind @param {string} label @param {boolean} checked @param {(isChecked: boolean) => any} onset */
export function checkbox(kind, label, checked, onset) {
  const onchange = (/** @type {any} */ event) => {
    onset(event.target.checked);
    redraw();
  };
  return h("label", { class: kind }, h("input", { type: "checkbox", checked, onchange }), label);
}

/** Return a choice of some values. @param {string} id @param {string} label @param {Array<[string, string]>} options @param {string} chosen @param {(value: string) => any} onset */
export function choice(id, label, options, chosen, onset) {
  const children = options.map(([value, text]) => h("option", { value, selected: value === chosen }, text));
  const onchange = (/** @type {any} */ event) => {
    onset(event.target.value);
    redraw();
  };
  return field(id, label, { tag: "select", children, onchange });
}
