// @ts-check
/** Import people from a file: first what would happen, then it happens. */
import { say } from "../../../page.js";
import { me } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { askOnce, button, checkbox, notice, section } from "../../../parts.js";
import { commas, dayOf, deviceZone, number, t } from "../../../text.js";
import { FileImport, linesText } from "../fileimport.js";
import { answer, why } from "../forms/actions.js";
import { about, similarGroups, userLink } from "../parts.js";
import { back } from "./parts.js";

export function openImport() {
  /** What happens to the accounts that somebody registered, by line. @type {Map<number, string>} */
  const choices = new Map();
  let isOfParents = false;
  const imports = new FileImport(
    (isDryRun) => `/users/import?dryRun=${isDryRun}${linesOf("claim")}${linesOf("vouch")}${isOfParents ? "&addressesOf=guardians" : ""}`,
    () => choices.clear(),
  );

  /** @param {boolean} isChecked */
  function setOfParents(isChecked) {
    isOfParents = isChecked;
    choices.clear();
    imports.send(true);
  }

  /** Offer that the addresses are those of parents; more so if several lines have the same. */
  function parentsPart() {
    const isShared = imports.problems.some(({ code, column }) => code === "SAME_USER" && column === "email");
    return isShared
      ? notice("", "warning", t("people.sharedAddresses"), button("second", t("people.ofParents"), () => setOfParents(true)))
      : checkbox("check", t("people.ofParents"), { checked: isOfParents }, setOfParents);
  }

  /** @param {string} choice */
  function linesOf(choice) {
    const lines = [...choices].filter(([, each]) => each === choice).map(([line]) => line);
    return lines.length ? `&${choice}=${lines.join(",")}` : "";
  }

  /** Return how the file was read: its first people, its classes, and lines that look odd. */
  function asRead() {
    const { first, groups, warnings } = imports.report.preview;
    return h(
      "div",
      { class: "stack", "data-key": "read" },
      h("ol", { class: "frame list" }, first.map((/** @type {any} */ each) => h(
        "li",
        null,
        about(h("strong", null, each.name ?? ""), [each.email, each.groups.join(", "), each.guardians.join(", ")]),
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
      imports.report.dryRun && h("select", { class: "input", "aria-label": email, onchange: (/** @type {any} */ event) => {
        choices.set(line, event.target.value);
        redraw();
      } }, options),
    );
  }

  function registeredPart() {
    const { report } = imports;
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
    const [{ leavers }, owner] = [imports.report, me?.id];
    if (imports.isSending) return;
    imports.isSending = true;
    while (leavers.length) {
      const { code, ...refusal } = await answer("banUser", { id: leavers[0].userId, reason: t("people.leaverReason") }, owner);
      if (code && code !== "USER_NOT_FOUND") {
        imports.error = why({ code, ...refusal });
        break;
      }
      leavers.shift();
    }
    imports.isSending = false;
    redraw();
  }

  function leaversPart() {
    const { report } = imports;
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

  function done() {
    isOfParents = false; // the next file may be one of the staff
    say(t("people.imported", { name: imports.name }));
    redraw();
  }

  function result() {
    const { report, name } = imports;
    const { dryRun, leavers, selfRegistered, linksAdded, linksRemoved, leadersChanged, withoutLeader } = report;
    // Who leads something new is mostly new, too.
    const changes = report.created + report.updated + [...choices.values()].filter(Boolean).length || leadersChanged;
    return [
      dryRun
        ? h("h2", null, t("people.preview", { name }))
        : notice(
          "yours",
          "tick",
          t("people.imported", { name }),
          h("a", { class: "btn second", href: "#/people/invitations" }, t("people.invitations")),
        ),
      imports.counts(["created", "updated", "unchanged", ...["vouchedFor", "claimed"].filter((each) => report[each])]),
      linksAdded + linksRemoved > 0 && h("p", null, t("people.links", { added: number(linksAdded), removed: number(linksRemoved) })),
      leadersChanged > withoutLeader.length && h("p", null, t("people.leaders", { shown: number(leadersChanged - withoutLeader.length) })),
      withoutLeader.length > 0 && notice("wait", "warning", t("people.withoutLeader", { names: withoutLeader.join(", ") })),
      dryRun && asRead(),
      imports.ignored(),
      similarGroups(report.similarGroups),
      selfRegistered.length > 0 && registeredPart(),
      leavers.length > 0 && leaversPart(),
      dryRun && (changes
        ? imports.button(t("people.importNow", { count: changes, shown: number(changes) }), done)
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
      imports.render(result, parentsPart()),
    ],
  };
}
