// @ts-check
/** Set a password by a link: the first one of an invitation, or a new one. */
import { reason } from "../bookings.js";
import { resultOf, run } from "../client.js";
import { go } from "../page.js";
import { h, redraw } from "../kernel.js";
import { button, field, languageLinks, notice, usernameField } from "../parts.js";
import { t } from "../text.js";
import { arrive, passwordField, sendingPage } from "./signin.js";

/** @param {string} token of an invitation, whose user is signed in at once */
export function openInvitation(token) {
  return openLink("invitation", token);
}

/** @param {string} token that was mailed: the user signs in with the new password */
export function openReset(token) {
  return openLink("reset", token);
}

/** @param {"invitation" | "reset"} name of the view @param {string} token which opens the account: it must not stay in the address */
function openLink(name, token) {
  history.replaceState(null, "", `#/${name}`);
  const page = sendingPage();
  const passwordFields = passwordField();
  let problem = "";
  let isEnded = !token;
  let isSet = false;
  /** Whose password it is. @type {{name: string, email: string | null, username: string | null} | null} */
  let owner = null;

  async function load() {
    try {
      owner = (await run("tokenOwner", { token })).tokenOwner;
      isEnded = !owner && !isSet;
    } catch {
      isEnded = false; // the form works without the name
    }
    redraw();
  }
  if (token) load();

  /** @param {any} event */
  async function submit({ target }) {
    const variables = { token, password: new FormData(target).get("password") };
    problem = "";
    const result = await resultOf(name === "reset" ? "resetPassword" : "setPassword", variables);
    if (result.__typename === "Session") return arrive(result);
    isSet = !result.code;
    isEnded = result.code === "INVALID_INVITATION";
    if (!isSet) problem = reason(result);
  }

  const loginName = () => owner?.email ?? owner?.username;

  function form() {
    return h(
      "form",
      { class: "stack", onsubmit: page.once(submit), novalidate: true },
      owner && h("p", null, t("invitation.for", { name: owner.name }), h("br"), h("strong", null, loginName())),
      h("p", { class: "soft" }, t(name === "reset" ? "invitation.resetHelp" : "invitation.help")),
      usernameField(loginName()),
      passwordFields(t("account.newPassword"), true, problem),
      page.button("big full", t("invitation.set")),
    );
  }

  const type = page.once(async ({ target }) => {
    token = String(new FormData(target).get("code"));
    await load();
  });

  const codeForm = () => h(
    "form",
    { class: "stack", onsubmit: type },
    h("p", null, t("invitation.missing")),
    field("code", t("invitation.code"), { autocomplete: "off", autocapitalize: "characters", spellcheck: "false", required: true }),
    page.button("big full", t("signin.goOn")),
  );

  const signIn = () => button("second", t("tab.signin"), () => go("#/signin"));

  function body() {
    if (isSet) return notice("yours", "tick", t("invitation.isSet"), signIn());
    return isEnded ? [token && !page.isSending && notice("stop", "warning", t("refusal.INVALID_INVITATION"), signIn()), codeForm()] : form();
  }

  return {
    title: () => t("invitation.title"),
    width: /** @type {"narrow"} */ ("narrow"),
    render: () => [h("h1", null, t("invitation.title")), body(), languageLinks()],
  };
}
