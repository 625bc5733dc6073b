// @ts-check
/** Everybody with an account: find, and go on to one person, a file or the invitations. */
import { run } from "../../client.js";
import { h } from "../../kernel.js";
import { checkbox, field, notice } from "../../parts.js";
import { commas, number, t } from "../../text.js";
import { groupList, groupsIn, readGroups, unknownGroups } from "./forms/groups.js";
import { pages } from "./pages.js";
import { openImport } from "./people/import.js";
import { openInvitations } from "./people/invitations.js";
import { about, listName, userLink } from "./parts.js";
import { news, personTags } from "./people/parts.js";
import { openPerson } from "./people/person.js";

const PEOPLE_PAGE = 50;
const TYPING_MS = 250;

/** What is searched stays while somebody looks at one person. @type {Record<string, any>} */
let filters = {};
/** The name of the campaign in the filters. */
let campaignName = "";

/** @param {string} part "", "new", "import", the id of a user, or "without-password" or "invitations", with "/" and a campaign whose people are meant */
export function openPeople(part) {
  const [page, campaignId = ""] = part.split("/");
  if (page === "import") return openImport();
  if (page === "invitations") return openInvitations(campaignId);
  if (page === "without-password") filters = { withoutPassword: true };
  else if (page) return openPerson(page === "new" ? "" : part);
  if (campaignId) filters.campaignId = campaignId;
  return openPeopleList();
}

function openPeopleList() {
  if (news.text) delete filters.text; // who was found by it is gone
  const people = pages(async (after) => {
    if (filters.campaignId && !after) {
      const { campaign } = await run("campaign", { id: filters.campaignId });
      [filters.campaignId, campaignName] = [campaign?.id, campaign?.name];
    }
    return (await run("users", { filter: filters, first: PEOPLE_PAGE, after })).users;
  });
  readGroups(people);
  /** @type {any} */
  let timer;

  /** @param {"text" | "group"} name @param {string} label */
  function typed(name, label) {
    const oninput = (/** @type {any} */ event) => {
      filters[name] = event.target.value || null;
      clearTimeout(timer);
      timer = setTimeout(people.load, TYPING_MS);
    };
    const value = { value: filters[name] ?? "", "data-controlled": true };
    return field(name, label, { type: "search", ...value, autocomplete: "off", list: name === "group" && "groups", oninput });
  }

  /** @param {"banned" | "withoutPassword" | "selfRegistered" | "campaignId"} name */
  function chip(name) {
    return checkbox("chip", t(`people.${name}`, { title: campaignName }), { checked: Boolean(filters[name]) }, (isChecked) => {
      filters[name] = isChecked || null;
      people.load();
    });
  }

  function render() {
    const count = people.nodes()?.length ?? -1;
    return [
      news.text && h("div", { role: "status" }, notice("yours", "tick", news.text)),
      h(
        "div",
        { class: "top" },
        h("h1", null, t("people.title")),
        count >= 0 && h("p", { class: "soft", role: "status" }, t(people.hasMore() ? "people.first" : "people.count", { count, shown: number(count) })),
      ),
      h(
        "p",
        { class: "row even" },
        h("a", { class: "btn", href: "#/people/new" }, t("people.new")),
        h("a", { class: "btn second", href: "#/people/import" }, t("people.import")),
        h("a", { class: "btn second", href: "#/people/invitations" }, t("people.invitations")),
      ),
      h("div", { class: "pair" }, typed("text", t("people.search")), typed("group", t("form.group"))),
      groupList(),
      people.nodes() && unknownGroups(groupsIn(filters.group ?? ""), (typed, group) => {
        filters.group = groupsIn(filters.group).map((each) => (each === typed ? group : each)).join(", ");
        people.load();
      }),
      h(
        "fieldset",
        { class: "chips" },
        h("legend", { class: "vh" }, t("filter.legend")),
        [chip("withoutPassword"), filters.campaignId && chip("campaignId"), chip("selfRegistered"), chip("banned")],
      ),
      people.render((user) => ({ key: user.id, signature: JSON.stringify(user), build: () => entry(user) }), notice("", "people", t("people.none"))),
    ];
  }

  return {
    title: () => t("people.title"),
    render,
    leave() {
      clearTimeout(timer);
      news.text = "";
      people.leave();
    },
  };
}

/** @param {any} user */
function entry(user) {
  return h(
    "li",
    { "data-key": user.id },
    about(userLink(user, h("strong", null, listName(user))), [user.email ?? user.username, commas(user.groups)]),
    h("span", { class: "row" }, personTags(user)),
  );
}
