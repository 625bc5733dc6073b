// @ts-check
/** Lists to download: a link that opens one file for five minutes. */
import { h } from "../../../kernel.js";
import { language, t } from "../../../text.js";

const FORMATS = /** @type {const} */ (["PDF", "XLSX", "CSV"]);

/** Return a button for each format. @param {import("./actions.js").Actions} actions @param {string} id of a slot or a campaign @param {string} label */
export function exportButtons(actions, id, label) {
  return h(
    "div",
    { class: "row even", role: "group", "aria-label": label },
    FORMATS.map((format) => actions.button(`export ${format}`, "second", [t(`export.${format}`)], async () => {
      const link = await actions.run(`export ${format}`, "createExportLink", { id, format, language: language.toUpperCase() });
      if (link) location.assign(link.url);
    })),
    FORMATS.map((format) => actions.problem(`export ${format}`)),
  );
}
