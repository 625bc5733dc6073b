// @ts-check
/** What a school does before its first booking period opens: each step ticks itself. */
import { codeOf, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { hidden, icon, section } from "../../parts.js";
import { t } from "../../text.js";

/**
 * Return the steps, for as long as nothing was published.
 * @param {{campaigns: () => any[] | null, hasCourses: (id: string) => boolean, create: () => void, openRooms: () => void, openHolidays: () => void,
 *   isOpen: () => boolean}} page
 */
export function firstSteps({ campaigns, hasCourses, create, openRooms, openHolidays, isOpen }) {
  /** @type {any} */
  let found = null;
  let wasOpen = false;

  function read() {
    run("firstSteps", {}).then((result) => {
      found = result;
      redraw();
    }).catch(codeOf); // the page works without them
  }
  read();

  /** @param {string} name @param {boolean} isDone @param {string | (() => void)} goal an address, or what opens it */
  function step(name, isDone, goal) {
    const target = typeof goal === "string" ? { href: goal } : { type: "button", class: "link", onclick: goal };
    return h(
      "li",
      { "data-key": name },
      h("p", { class: "row" },
        icon(isDone ? "tick" : "clock", isDone ? "good" : "soft"),
        h(typeof goal === "string" ? "a" : "button", target, t(`steps.${name}`)),
        isDone && hidden(t("steps.done"))),
    );
  }

  function render() {
    const all = campaigns();
    if (wasOpen && !isOpen()) read();
    wasOpen = isOpen();
    if (!found || !all || all.some((each) => each.published)) return null;
    const first = all[0];
    const plan = first ? `#/plan/${first.id}` : create;
    return section("steps", t("steps.title"), [
      h("p", { class: "soft" }, t("steps.help")),
      h(
        "ol",
        { class: "frame list" },
        step("people", found.people.nodes.length > 1, "#/people/import"),
        step("rooms", found.resources.nodes.length > 0, openRooms),
        step("holidays", found.holidayLists.nodes.length > 0, openHolidays),
        step("campaign", Boolean(first), plan),
        step("courses", Boolean(first) && hasCourses(first.id), plan),
        step("invitations", found.ready.nodes.length > 1, "#/people/invitations"),
        step("publish", false, plan),
      ),
    ]);
  }

  return { render };
}
