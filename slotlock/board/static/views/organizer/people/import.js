// @ts-check
/** Import people from a file: first what would happen, then it happens. */
import { codeOf, me } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { askOnce, button, icon, notice, section } from "../../../parts.js";
import { commas, dayOf, deviceZone, errorText, number, t } from "../../../text.js";
import { post } from "../files.js";
import { answer, why } from "../forms/actions.js";
import { similarGroups } from "../parts.js";
import { about, back, messageOf, userLink } from "./parts.js";
import { isWorkbook, workbookToCsv } from "./xlsx.js";

export function openImport() {
  /** @type {{name: string, content: Blob} | null} */
  let file = null;
  /** What the server says about the file. @type {any} */
  let report = null;
  /** @type {{line: number, lines?: number[], count?: number, header: string | null, message: string, code: string, values: Record<string, number>}[]} */
  let problems = [];
  let problemCount = 0;
  let error = "";
  /** What happens to the accounts that somebody registered, by line. @type {Map<number, string>} */
  const choices = new Map();
  let isSending = false;

  /** @param {any} event */
  async function choose(event) {
    const [chosen] = event.target.files;
    if (!chosen) return;
    choices.clear();
    report = file = null;
    problems = [];
    error = "";
    try {
      // The content, as a file that is saved again meanwhile could not be sent a second time.
      const content = await chosen.arrayBuffer();
      file = { name: chosen.name, content: new Blob([isWorkbook(content) ? await workbookToCsv(content) : content]) };
    } catch {
      error = t("people.unreadable", { name: chosen.name });
      return redraw();
    }
    send(true);
  }

  /** @param {string} choice */
  function linesOf(choice) {
    const lines = [...choices].filter(([, each]) => each === choice).map(([line]) => line);
    return lines.length ? `&${choice}=${lines.join(",")}` : "";
  }

  /** @param {boolean} isDryRun */
  async function send(isDryRun) {
    if (isSending || !file) return;
    isSending = true;
    error = "";
    problems = [];
    redraw();
    try {
      const { ok, text } = await post(`/users/import?dryRun=${isDryRun}${linesOf("claim")}${linesOf("vouch")}`, file.content);
      if (ok) report = JSON.parse(text);
      else if (text.includes('"problems"')) ({ problems, problemCount } = JSON.parse(text));
      else error = messageOf(text);
      if (!ok) report = null;
    } catch (caught) {
      const code = codeOf(caught);
      error = isDryRun ? errorText(code) : t("people.importLost");
    }
    isSending = false;
    redraw();
  }

  function counts() {
    const shown = ["created", "updated", "unchanged", ...["vouchedFor", "claimed"].filter((name) => report[name])];
    return h(
      "dl",
      { class: "numbers" },
      shown.map((name) => h("div", null, h("dt", null, t(`people.${name}${report.dryRun ? "" : "Now"}`)), h("dd", null, number(report[name])))),
    );
  }

  /** Return how the file was read: its first people, its classes, and lines that look odd. */
  function asRead() {
    const { first, groups, warnings } = report.preview;
    return h(
      "div",
      { class: "stack", "data-key": "read" },
      h("ol", { class: "frame list" }, first.map((/** @type {any} */ each) => h(
        "li",
        null,
        about(h("strong", null, each.name ?? ""), [each.email, each.groups.join(", ")]),
      ))),
      groups.length > 0 && h("p", null, t("people.readGroups", {
        groups: groups.map((/** @type {any} */ each) => `${each.name} (${number(each.count)})`).join(", "),
      })),
      warnings.map((/** @type {any} */ { code, lines, count }) => notice(
        "wait",
        "warning",
        [t(`people.warning.${code}`), " ", linesText(lines, count)],
      )),
    );
  }

  /** Return the first lines of so many. @param {number[]} lines @param {number} count */
  function linesText(lines, count) {
    const more = count - lines.length;
    return t("people.lines", { count, lines: commas(lines.map(String)) }) + (more > 0 ? t("people.moreLines", { count: more }) : "");
  }

  /** @param {any} account */
  function registeredRow(account) {
    const { line, email, name } = account;
    const options = ["", "vouch", ...(me?.role === "ADMIN" ? ["claim"] : [])].map((each) => h(
      "option",
      { value: each, selected: each === (choices.get(line) ?? "") },
      t(`people.${each || "leave"}`),
    ));
    return h(
      "li",
      null,
      about(
        userLink({ id: account.userId }, h("strong", null, email)),
        [t("people.registeredLine", { line, name, day: dayOf(account.registeredAt, deviceZone) })],
      ),
      report.dryRun && h("select", { class: "input", "aria-label": email, onchange: (/** @type {any} */ event) => {
        choices.set(line, event.target.value);
        redraw();
      } }, options),
    );
  }

  function registeredPart() {
    return section("registered", t("people.part.registered"), [
      h("p", { class: "soft" }, t("people.registeredLines")),
      report.dryRun && h("p", null, button("second", t("people.vouchForAll"), () => {
        for (const each of report.selfRegistered) choices.set(each.line, "vouch");
        redraw();
      })),
      h("ul", { class: "frame list" }, report.selfRegistered.map(registeredRow)),
    ]);
  }

  /** Ban those whom the file leaves out, as a sync does. */
  async function ban() {
    const [{ leavers }, owner] = [report, me?.id];
    if (isSending) return;
    isSending = true;
    while (leavers.length) {
      const { code, ...refusal } = await answer("banUser", { id: leavers[0].userId, reason: t("people.leaverReason") }, owner);
      if (code && code !== "USER_NOT_FOUND") {
        error = why({ code, ...refusal });
        break;
      }
      leavers.shift();
    }
    isSending = false;
    redraw();
  }

  function leaversPart() {
    const count = { count: report.leavers.length, shown: number(report.leavers.length) };
    return section("leavers", t("people.part.leavers"), [
      h("p", { class: "soft" }, t("people.leavers")),
      h(
        "ul",
        { class: "frame list" },
        report.leavers.map((/** @type {any} */ each) => h(
          "li",
          { "data-key": each.userId },
          about(userLink({ id: each.userId }, h("strong", null, each.name)), [each.email, commas(each.groups)]),
        )),
      ),
      !report.dryRun && askOnce(
        "ban leavers",
        "final",
        { label: t("people.banLeavers", count), question: t("people.banHelp"), yes: t("people.part.ban"), no: t("form.back") },
        ban,
      ),
    ]);
  }

  function problemsPart() {
    return section("problems", t("people.problems", { count: problemCount, shown: number(problemCount) }), [
      h("p", { class: "soft" }, t("people.problemsHelp")),
      h("ol", { class: "frame list" }, problems.map(({ line, lines = [line], count = 1, header, message, code, values }) => h(
        "li",
        null,
        icon("warning", "bad"),
        h(
          "p",
          null,
          h("strong", null, linesText(lines, count)),
          header && ` · ${header}`,
          h("br"),
          t(`import.${code}`, { ...values, count: values?.cells }, message),
        ),
      ))),
    ]);
  }

  function result() {
    const { dryRun, ignoredColumns, leavers, selfRegistered } = report;
    const changes = report.created + report.updated + [...choices.values()].filter(Boolean).length;
    return [
      dryRun
        ? h("h2", null, t("people.preview", { name: file?.name }))
        : notice(
          "yours",
          "tick",
          t("people.imported", { name: file?.name }),
          h("a", { class: "btn second", href: "#/people/invitations" }, t("people.invitations")),
        ),
      counts(),
      dryRun && asRead(),
      ignoredColumns.length > 0 && notice("", "warning", t("people.ignoredColumns", { columns: commas(ignoredColumns) })),
      similarGroups(report.similarGroups),
      selfRegistered.length > 0 && registeredPart(),
      leavers.length > 0 && leaversPart(),
      dryRun && (changes
        ? h(
          "p",
          null,
          button(
            "big",
            t(isSending ? "people.importing" : "people.importNow", { count: changes, shown: number(changes) }),
            () => send(false),
            { "aria-disabled": isSending && "true" },
          ),
        )
        : !selfRegistered.length && notice("", "tick", t("people.nothingToDo"))),
    ];
  }

  return {
    title: () => t("people.import"),
    render: () => [
      back(),
      h("h1", null, t("people.import")),
      h(
        "div",
        { class: "stack tight" },
        h("p", null, t("people.importHelp")),
        h("p", { class: "small soft" }, t("people.importExample")),
        h("pre", { class: "sheet small", tabindex: 0 }, t("people.importSample")),
      ),
      h(
        "div",
        { class: "field" },
        h("label", { for: "file" }, t("people.file")),
        h("input", {
          class: "input",
          id: "file",
          type: "file",
          accept: ".csv,.tsv,.txt,.xlsx,text/csv",
          onchange: choose,
          onclick: (/** @type {any} */ event) => {
            event.target.value = ""; // the same file, corrected, is another choice
          },
          "aria-describedby": error ? "file-error" : null,
        }),
        error && h("p", { class: "error", id: "file-error", role: "alert" }, icon("warning"), h("span", null, error)),
      ),
      h(
        "p",
        { class: "vh", role: "status" },
        isSending ? t("people.checking") : report ? t(report.dryRun ? "people.checked" : "people.imported", { name: file?.name }) : "",
      ),
      isSending && !report && h("p", { class: "soft" }, t("people.checking")),
      problems.length > 0 && problemsPart(),
      report && result(),
    ],
  };
}
