// @ts-check
/** Set a password by a link: the first one of an invitation, or a new one. */
import { reason } from "../bookings.js";
import { home, run, setSession } from "../client.js";
import { go, site } from "../app.js";
import { h, redraw } from "../kernel.js";
import { field, languageLinks, notice, usernameField } from "../parts.js";
import { errorText, t } from "../text.js";

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
  let isSending = false;
  let isShown = false;
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
      // The form works without the name.
    }
    redraw();
  }
  if (token) load();

  /** @param {any} event */
  async function submit(event) {
    event.preventDefault();
    if (isSending) return;
    const password = new FormData(event.target).get("password");
    isSending = true;
    problem = "";
    redraw();
    try {
      const result = await (name === "reset" ? run("resetPassword", { token, password }).then((data) => data.resetPassword) : run("setPassword", { token, password }).then((data) => data.setPassword));
      if (result.__typename === "Session") {
        setSession(result);
        return location.replace(home());
      }
      isSet = result.__typename === "PasswordReset";
      if (isSet) return;
      isEnded = result.code === "INVALID_INVITATION";
      problem = reason(result);
    } catch (caught) {
      const code = /** @type {any} */ (caught).code ?? "INTERNAL";
      problem = errorText(code);
    } finally {
      isSending = false;
      redraw();
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid]"))?.focus());
    }
  }

  const loginName = () => owner?.email ?? owner?.username;

  function form() {
    return h(
      "form",
      { class: "stack", onsubmit: submit, novalidate: true },
      owner && h("p", null, t("invitation.for", { name: owner.name }), h("br"), h("strong", null, loginName())),
      h("p", { class: "soft" }, t(name === "reset" ? "invitation.resetHelp" : "invitation.help")),
      usernameField(loginName()),
      field("password", t("invitation.password"), { type: isShown ? "text" : "password", autocomplete: "new-password", required: true }, problem, t("signin.passwordRules", site.passwordRules)),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: isShown, onchange: (/** @type {any} */ event) => {
        isShown = event.target.checked;
        redraw();
      } }), t("signin.show")),
      h("button", { class: "btn big full", "aria-disabled": isSending && "true" }, t(isSending ? "signin.sending" : "invitation.set")),
    );
  }

  const signIn = () => h("button", { type: "button", class: "btn second", onclick: () => go("#/signin") }, t("tab.signin"));

  function body() {
    if (isSet) return notice("yours", "tick", t("invitation.isSet"), signIn());
    return isEnded ? notice("stop", "warning", t(token ? "refusal.INVALID_INVITATION" : "invitation.missing"), signIn()) : form();
  }

  return {
    title: () => t("invitation.title"),
    width: /** @type {"narrow"} */ ("narrow"),
    render: () => [h("h1", null, t("invitation.title")), body(), languageLinks()],
  };
}
