// @ts-check
/** What a school does before its first booking period opens: each step ticks itself. */
import { site } from "../../page.js";
import { codeOf, me, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { hidden, icon, section } from "../../parts.js";
import { t } from "../../text.js";

/**
 * Return the steps, for as long as nothing was published.
 * @param {() => any[] | null} campaigns @param {(id: string) => boolean} hasCourses
 */
export function firstSteps(campaigns, hasCourses) {
  /** @type {any} */
  let found = null;
  /** The campaign that was asked whom it invites, and the newest invitation. */
  let asked = "";
  /** @type {string | null} */
  let invitedAt = null;
  run("firstSteps", {}).then((result) => {
    found = result;
    redraw();
  }).catch(codeOf); // the page works without them

  /** @param {string} name @param {boolean} isDone @param {string} href */
  function step(name, isDone, href) {
    return h(
      "li",
      { "data-key": name },
      h(
        "p",
        { class: "row" },
        icon(isDone ? "tick" : "clock", isDone ? "good" : "soft"),
        h("a", { href }, t(`steps.${name}`)),
        isDone && hidden(t("steps.done")),
      ),
    );
  }

  /** @param {string} id */
  async function readInvitations(id) {
    asked = id;
    invitedAt = (await run("campaignReadiness", { id }).catch(codeOf))?.campaignReadiness?.lastInvitedAt ?? null;
    redraw();
  }

  function render() {
    const all = campaigns();
    if (!found || !all || all.some((each) => each.published)) return null;
    const [first] = all;
    if (first && asked !== first.id) readInvitations(first.id);
    const plan = first ? `#/plan/${first.id}` : "#/organizer/new";
    return section("steps", t("steps.title"), [
      h("p", { class: "soft" }, t("steps.help")),
      h(
        "ol",
        { class: "frame list" },
        me?.role === "ADMIN" && step("name", site.name !== "slotlock", "#/school"),
        step("people", found.people.nodes.length > 1, "#/people/import"),
        step("rooms", found.resources.nodes.length > 0, "#/organizer/rooms"),
        step("holidays", found.holidayLists.nodes.length > 0, "#/organizer/holidays"),
        step("campaign", Boolean(first), plan),
        step("courses", Boolean(first) && hasCourses(first.id), plan),
        step("invitations", Boolean(invitedAt) || found.ready.nodes.length > 1, "#/people/invitations"),
        step("publish", false, plan),
      ),
    ]);
  }

  return { render };
}
