// @ts-check
/** The courses of a campaign from a file, and as a file. */
import { now } from "../../clock.js";
import { codeOf } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { button, checkbox, icon, notice, saveFile, section } from "../../parts.js";
import { commas, errorText, language, number, schoolZone, shortWhenOf, t } from "../../text.js";
import { FileImport, linesText } from "./fileimport.js";
import { get, messageOf, saveCsv } from "./files.js";
import { DAY_MS } from "./forms/localtime.js";
import { about } from "./parts.js";

/** @param {string} campaignId @param {(text: string) => void} leave what to say once the courses are there */
export function courseFile(campaignId, leave) {
  let createsResources = false;
  let saveError = "";
  // Times of a file are in the zone of the forms, which may be that of this device.
  const zone = encodeURIComponent(schoolZone);
  const imports = new FileImport(
    (isDryRun) => `/slots/import?campaign=${campaignId}&dryRun=${isDryRun}&createResources=${createsResources}&timeZone=${zone}`,
  );

  /** Return the lines of a file with two courses that begin in a month. */
  function example() {
    const [first, last] = [30, 120].map((days) => new Date(now() + days * DAY_MS).toISOString().slice(0, 10));
    return t("courses.example", { first, last }).split("\n").map((line) => line.split(","));
  }

  /** @param {string} format */
  async function save(format) {
    const ending = format.toLowerCase();
    saveError = "";
    try {
      const { ok, text, content } = await get(`/exports/campaigns/${campaignId}/slots.${ending}?language=${language}`);
      if (ok) saveFile(`${t("courses.fileName")}.${ending}`, content);
      else saveError = messageOf(text);
    } catch (caught) {
      saveError = errorText(codeOf(caught));
    }
    redraw();
  }

  /** @param {boolean} isChecked */
  function setCreates(isChecked) {
    createsResources = isChecked;
    imports.send(true);
  }

  /** Offer to create teachers and rooms; more so if some are missing. */
  function resourcesPart() {
    const label = t("courses.createResources");
    return imports.problems.some(({ code }) => code === "UNKNOWN_RESOURCE")
      ? notice("", "warning", t("courses.unknownNames"), button("second", label, () => setCreates(true)))
      : checkbox("check", label, { checked: createsResources }, setCreates);
  }

  function done() {
    const { created, updated } = imports.report;
    leave(t("courses.imported", { count: created + updated, shown: number(created + updated) }));
  }

  function preview() {
    const { preview, created, updated } = imports.report;
    const more = created + updated - preview.length;
    return preview.length > 0 && [
      h("ol", { class: "frame list", "data-key": "changes" }, preview.map((/** @type {any} */ each) => h(
        "li",
        null,
        about([h("strong", null, each.title), " ", h("span", { class: "tag" }, t(each.changed.length ? "people.updated" : "people.created"))], [
          linesText([each.line]),
          each.number,
          shortWhenOf(each.startTime, each.timeZone),
          each.meetingCount > 1 && t("slot.meetings", { count: each.meetingCount }),
          each.changed.length > 0 && t("courses.changed", { columns: commas(each.changed) }),
        ]),
      ))),
      more > 0 && h("p", { class: "soft" }, t("courses.moreChanges", { count: more, shown: number(more) })),
    ];
  }

  function result() {
    const { report, name } = imports;
    if (!report.dryRun) return null;
    const count = report.created + report.updated;
    const names = commas(report.newResources.map((/** @type {any} */ each) => each.name));
    return [
      h("h2", null, t("people.preview", { name })),
      imports.counts(["created", "updated", "unchanged", "notInFile"]),
      preview(),
      names && notice("", "school", t("courses.newResources", { names })),
      imports.ignored(),
      count ? imports.button(t("courses.importNow", { count, shown: number(count) }), done) : notice("", "tick", t("people.nothingToDo")),
    ];
  }

  /** @param {string} title */
  function render(title) {
    return [
      h("h1", null, title),
      h("p", null, t("courses.help")),
      h("pre", { class: "sheet small", tabindex: 0 }, example().map((line) => line.join(";")).join("\n")),
      h("p", { class: "row" }, button("second", t("courses.saveExample"), () => saveCsv(`${t("courses.fileName")}.csv`, example()))),
      imports.render(result, resourcesPart()),
      section("export", t("courses.export"), [
        h("p", { class: "soft" }, t("courses.exportHelp")),
        h("div", { class: "row even" }, ["XLSX", "CSV"].map((format) => button("second", t(`export.${format}`), () => save(format)))),
        saveError && h("p", { class: "error", role: "alert" }, icon("warning"), h("span", null, saveError)),
      ]),
    ];
  }

  return { render };
}
