// @ts-check
/** Everybody with an account: find, and go on to one person, a file or the invitations. */
import { codeOf, run } from "../../client.js";
import { h, list, redraw } from "../../kernel.js";
import { bones, button, failure, field, notice } from "../../parts.js";
import { number, t } from "../../text.js";
import { openImport } from "./people/import.js";
import { openInvitations } from "./people/invitations.js";
import { personTags } from "./people/parts.js";
import { openPerson } from "./people/person.js";

const PEOPLE_PAGE = 50;
const TYPING_MS = 250;

/** What is searched stays while somebody looks at one person. */
const filters = { text: "", group: "", banned: false, withoutPassword: false, selfRegistered: false };

/** @param {string} part "", "without-password", "new", "import", "invitations" or the id of a user */
export function openPeople(part) {
  if (part === "import") return openImport();
  if (part === "invitations") return openInvitations();
  if (part === "without-password") Object.assign(filters, { text: "", group: "", banned: false, withoutPassword: true, selfRegistered: false });
  else if (part) return openPerson(part === "new" ? "" : part);
  return openPeopleList();
}

function openPeopleList() {
  /** @type {any[] | null} */
  let people = null;
  let after = "";
  let error = "";
  let reads = 0;
  /** @type {any} */
  let timer;

  /** @param {boolean} isMore whether to add the next page */
  async function load(isMore) {
    const read = (reads += 1);
    const filter = {
      text: filters.text.trim() || null,
      group: filters.group.trim() || null,
      banned: filters.banned || null,
      withoutPassword: filters.withoutPassword || null,
      selfRegistered: filters.selfRegistered || null,
    };
    try {
      const { users } = await run("users", { filter, first: PEOPLE_PAGE, after: isMore ? after : null });
      if (read !== reads) return; // somebody typed on
      people = isMore ? [...(people ?? []), ...users.nodes] : users.nodes;
      after = users.pageInfo.hasNextPage ? users.pageInfo.endCursor : "";
      error = "";
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  load(false);

  /** @param {"text" | "group"} name @param {string} value */
  function type(name, value) {
    filters[name] = value;
    clearTimeout(timer);
    timer = setTimeout(() => load(false), TYPING_MS);
  }

  function filterRow() {
    const input = (/** @type {"text" | "group"} */ name) => ({ type: "search", value: filters[name], autocomplete: "off", oninput: (/** @type {any} */ event) => type(name, event.target.value) });
    const chip = (/** @type {"banned" | "withoutPassword" | "selfRegistered"} */ name) =>
      h("label", { class: "chip" }, h("input", { type: "checkbox", checked: filters[name], onchange: (/** @type {any} */ event) => {
        filters[name] = event.target.checked;
        load(false);
      } }), t(`people.${name}`));
    return [
      h("div", { class: "pair" }, field("text", t("people.search"), input("text")), field("group", t("people.group"), input("group"))),
      h("fieldset", { class: "chips" }, h("legend", { class: "vh" }, t("filter.legend")), chip("withoutPassword"), chip("selfRegistered"), chip("banned")),
    ];
  }

  function found() {
    if (!people) return error ? null : bones(5);
    if (!people.length) return notice("", "people", t("people.none"));
    return list("ul", { class: "frame list" }, people.map((user) => ({ key: user.id, signature: JSON.stringify(user), build: () => entry(user) })));
  }

  return {
    title: () => t("people.title"),
    render: () => [
      h("div", { class: "top" }, h("h1", null, t("people.title")), people && h("p", { class: "soft", role: "status" }, t(after ? "people.first" : "people.count", { count: people.length, shown: number(people.length) }))),
      h("p", { class: "row even" }, h("a", { class: "btn", href: "#/people/new" }, t("people.new")), h("a", { class: "btn second", href: "#/people/import" }, t("people.import")), h("a", { class: "btn second", href: "#/people/invitations" }, t("people.invitations"))),
      ...filterRow(),
      error && failure(error, () => load(false)),
      found(),
      people && after && h("p", null, button("second", t("people.more"), () => load(true))),
    ],
    leave: () => clearTimeout(timer),
  };
}

/** @param {any} user */
function entry(user) {
  const about = [user.email ?? user.username, user.groups.join(", ")].filter(Boolean).join(" · ");
  return h(
    "li",
    { "data-key": user.id },
    h("p", null, h("a", { href: `#/people/${user.id}` }, h("strong", null, user.name)), about && h("br"), h("span", { class: "small soft" }, about)),
    h("span", { class: "row" }, personTags(user)),
  );
}
