// @ts-check
/** A search for users by name or address, with what can be done with each. */
import { run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { field } from "../../parts.js";
import { t } from "../../text.js";
import { listName } from "./parts.js";

const PAUSE_MS = 250;
const MOST_USERS = 8;

/** Return the search. @param {(user: any) => any[]} actionsOf returns the buttons of a user @param {string} [slot] of a leader, who finds only some */
export function userPicker(actionsOf, slot) {
  let text = "";
  /** @type {any[] | null} */
  let users = null;
  let hasMore = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  async function find() {
    const wanted = text.trim();
    const [name, variables] = slot ? ["bookableUsers", { slot, text: wanted }] : ["findUsers", { filter: { text: wanted } }];
    const found = wanted && (await run(name, { ...variables, first: MOST_USERS }).catch(() => null));
    if (wanted !== text.trim()) return;
    users = found ? found.users.nodes : null;
    hasMore = found && found.users.pageInfo.hasNextPage;
    redraw();
  }

  /** Forget what was found. */
  function clear() {
    text = "";
    users = null;
    redraw();
  }

  function render() {
    return h(
      "div",
      { class: "stack", "data-key": "picker" },
      field("user-search", t(slot ? "signin.name" : "people.search"), {
        type: "search",
        autocomplete: "off",
        value: text,
        "data-controlled": true,
        oninput: (/** @type {any} */ event) => {
          text = event.target.value;
          clearTimeout(timer);
          timer = setTimeout(find, PAUSE_MS);
        },
      }),
      h("p", { class: "vh", role: "status" }, users ? t("picker.found", { count: users.length }) : ""),
      users && (users.length
        ? h(
          "ul",
          { class: "frame list" },
          users.map((user) => h(
            "li",
            { "data-key": user.id },
            h(
              "p",
              null,
              h("strong", null, listName(user)),
              " ",
              h("span", { class: "soft" }, [user.email ?? user.username, ...user.groups ?? []].filter(Boolean).join(" · ")),
            ),
            actionsOf(user),
          )),
        )
        : h("p", { class: "soft" }, t("picker.none"))),
      hasMore && users && h("p", { class: "small soft" }, t("picker.more")),
    );
  }

  return { render, clear };
}
