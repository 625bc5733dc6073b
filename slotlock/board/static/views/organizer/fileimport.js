// @ts-check
/** A file that is imported: first the server says what would change, or which lines are wrong, then it happens. */
import { codeOf } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { button, icon, notice, section } from "../../parts.js";
import { commas, errorText, hasText, number, problemText, t } from "../../text.js";
import { messageOf, post } from "./files.js";
import { isWorkbook, workbookToCsv } from "./xlsx.js";

export class FileImport {
  /** @type {{name: string, content: Blob} | null} */
  file = null;
  /** What the server says about the file. @type {any} */
  report = null;
  /**
   * @type {{
   *   line: number, lines?: number[], count?: number, column: string | null, header: string | null,
   *   message: string, code: string, values: Record<string, any>,
   * }[]}
   */
  problems = [];
  problemCount = 0;
  error = "";
  isSending = false;
  /** Whether another file, or something else for it, was chosen meanwhile. */
  isOutdated = false;
  address;
  forget;

  /**
   * @param {(isDryRun: boolean) => string} address to which the file is sent
   * @param {() => void} [forget] what was chosen for the file before
   */
  constructor(address, forget = () => {}) {
    this.address = address;
    this.forget = forget;
  }

  get name() {
    return this.file?.name;
  }

  /** @param {any} event */
  async choose(event) {
    const [chosen] = event.target.files;
    if (!chosen) return;
    this.forget();
    this.report = this.file = null;
    this.problems = [];
    this.error = "";
    try {
      // The content, as a file that is saved again meanwhile could not be sent a second time.
      const content = await chosen.arrayBuffer();
      this.file = { name: chosen.name, content: new Blob([isWorkbook(content) ? await workbookToCsv(content) : content]) };
    } catch {
      this.error = t("people.unreadable", { name: chosen.name });
      return redraw();
    }
    await this.send(true);
  }

  /** Send the file, if there is one. @param {boolean} isDryRun */
  async send(isDryRun) {
    if (this.isSending) this.isOutdated = isDryRun;
    if (this.isSending || !this.file) return;
    this.isSending = true;
    this.error = "";
    this.problems = [];
    redraw();
    try {
      const { ok, text } = await post(this.address(isDryRun), this.file.content);
      if (ok) this.report = JSON.parse(text);
      else if (text.includes('"problems"')) ({ problems: this.problems, problemCount: this.problemCount } = JSON.parse(text));
      else this.error = messageOf(text);
      if (!ok) this.report = null;
    } catch (caught) {
      const code = codeOf(caught);
      this.error = isDryRun ? errorText(code) : t("people.importLost");
    }
    this.isSending = false;
    redraw();
    if (!this.isOutdated) return;
    this.isOutdated = false;
    await this.send(true);
  }

  /** Return how many there are of each kind. @param {string[]} kinds */
  counts(kinds) {
    const { report } = this;
    return h(
      "dl",
      { class: "numbers" },
      kinds.map((name) => h("div", null, h("dt", null, t(`people.${name}${report.dryRun ? "" : "Now"}`)), h("dd", null, number(report[name])))),
    );
  }

  ignored() {
    const { ignoredColumns } = this.report;
    return ignoredColumns.length > 0 && notice("", "warning", t("people.ignoredColumns", { columns: commas(ignoredColumns) }));
  }

  /** Return the button that imports the file as it was checked. @param {string} label @param {() => any} done */
  button(label, done) {
    const submit = async () => {
      await this.send(false);
      if (this.report && !this.report.dryRun) done();
    };
    return h("p", null, button("big", this.isSending ? t("people.importing") : label, submit, { "aria-disabled": this.isSending && "true" }));
  }

  problemsPart() {
    const count = this.problemCount;
    return section("problems", t("people.problems", { count, shown: number(count) }), [
      h("p", { class: "soft" }, t("people.problemsHelp")),
      h("ol", { class: "frame list" }, this.problems.map(({ line, lines = [line], count: found = 1, header, message, code, values }) => h(
        "li",
        null,
        icon("warning", "bad"),
        h(
          "p",
          null,
          h("strong", null, linesText(lines, found)),
          header && ` · ${header}`,
          h("br"),
          hasText(`import.${code}`) ? t(`import.${code}`, { count: values.cells, ...values }) : problemText({ code, message, values: listed(values) }),
        ),
      ))),
    ]);
  }

  /** Return the choice of a file, and what is known about it. @param {() => any} result of its report @param {any} [more] choices */
  render(result, more) {
    const { error, report, isSending } = this;
    return [
      h(
        "div",
        { class: "field" },
        h("label", { for: "file" }, t("people.file")),
        h("input", {
          class: "input",
          id: "file",
          type: "file",
          accept: ".csv,.tsv,.txt,.xlsx,text/csv",
          onchange: (/** @type {any} */ event) => this.choose(event),
          onclick: (/** @type {any} */ event) => {
            event.target.value = ""; // the same file, corrected, is another choice
          },
          "aria-describedby": error ? "file-error" : null,
        }),
        error && h("p", { class: "error", id: "file-error", role: "alert" }, icon("warning"), h("span", null, error)),
      ),
      more,
      h(
        "p",
        { class: "vh", role: "status" },
        isSending ? t("people.checking") : report?.dryRun ? t("people.checked", { name: this.name }) : "",
      ),
      isSending && !report && h("p", { class: "soft" }, t("people.checking")),
      this.problems.length > 0 && this.problemsPart(),
      report && result(),
    ];
  }
}

/** Return the values of a problem as the API lists them. @param {Record<string, any>} values */
function listed(values) {
  return Object.entries(values).map(([name, value]) => ({ name, value: String(value) }));
}

/** Return the first lines of so many. @param {number[]} lines @param {number} [count] */
export function linesText(lines, count = lines.length) {
  const more = count - lines.length;
  return t("people.lines", { count, lines: commas(lines.map(String)) }) + (more > 0 ? t("people.moreLines", { count: more }) : "");
}
