// @ts-check
/** Lists to download: a link that opens one file for five minutes. */
import { h } from "../../../kernel.js";
import { language, t } from "../../../text.js";

/** The format of a file and what its sheets stand for, also in the keys of the texts. */
const OF_SLOTS = ["PDF", "XLSX", "CSV"];
const OF_CAMPAIGNS = [...OF_SLOTS, "XLSX.USER", "XLSX.GROUP", "XLSX.RESOURCE", "PDF.RESOURCE"];

/**
 * Return a button for each file.
 * @param {import("./actions.js").Actions} actions @param {string} id of a slot or a campaign @param {string} label @param {string[]} [files]
 */
export function exportButtons(actions, id, label, files = id.startsWith("campaign") ? OF_CAMPAIGNS : OF_SLOTS) {
  return h(
    "div",
    { class: "row even", role: "group", "aria-label": label },
    files.map((file) => actions.button(`export ${file}`, "second", [t(`export.${file}`)], async () => {
      const [format, grouping = "SLOT"] = file.split(".");
      const link = await actions.run(`export ${file}`, "createExportLink", { id, format, grouping, language: language.toUpperCase() });
      if (link) location.assign(link.url);
    })),
    files.map((file) => actions.problem(`export ${file}`)),
  );
}
