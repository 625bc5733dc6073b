// @ts-check
/** The page to which a provider of the school sends the user: it finishes the sign-in. */
import { reason } from "../bookings.js";
import { BUSY, hasSession, me, onSession, run, sendUntilAnswered, signOut } from "../client.js";
import { BACK, go, returned, say } from "../page.js";
import { h, redraw } from "../kernel.js";
import { button, failure, field, languageLinks, notice, usernameField, whose } from "../parts.js";
import { providerName, takeBegun } from "../provider.js";
import { tab } from "../storage.js";
import { t } from "../text.js";
import { arrive } from "./signin.js";

/** Return what a user signs in with at providers. @param {any[]} identities @param {(id: string) => any} unlink */
export function identityList(identities, unlink) {
  const item = (/** @type {any} */ { id, provider, email }) => h(
    "li",
    { "data-key": id },
    h("p", null, h("strong", null, providerName(provider)), email && [h("br"), h("span", { class: "soft" }, email)]),
    button("second", [t("account.unlink"), whose(providerName(provider))], () => unlink(id)),
  );
  return h("ul", { class: "frame list" }, identities.map(item));
}

/** The sign-in that this page finishes: once, however often its view opens. @type {{verifier: string, provider: string, userId?: string} | null | undefined} */
let begun;
/** What ended it. */
let problem = "";
/** The code of a request without an answer, which may be sent again. */
let error = "";
let isLinkRequired = false;
/** After which a sign-in can be linked with the right password. */
const NOT_USED_UP = /^(REAUTH|INVALID_C|TOO_MANY)/;
/** Why a link needs a password. */
let linkTrouble = "";

/** @param {string} text */
function endSignOn(text) {
  problem = text;
  say(text);
  redraw();
}

/** @param {string} [currentPassword] */
async function finishSignOn(currentPassword) {
  // Another user of this browser may have signed in meanwhile.
  if (!begun || (begun.userId && me?.id !== begun.userId)) return endSignOn(t("signon.elsewhere"));
  const name = providerName(begun.provider);
  const denial = returned.get("error");
  if (denial === "access_denied") return endSignOn(t("signon.denied", { name }));
  if (denial !== null) return endSignOn(t("signon.error", { name, error: denial.slice(0, 60) }));
  error = linkTrouble = "";
  redraw();
  const operation = begun.userId ? "linkSignIn" : "finishSignIn";
  const variables = { state: returned.get("state"), code: returned.get("code") ?? "", verifier: begun.verifier, issuer: returned.get("iss"), currentPassword };
  const result = (await sendUntilAnswered(() => run(operation, variables).then((data) => data[operation]), {
    onTrouble: () => say(t("signin.busy")),
    codes: BUSY,
  })) ?? { code: "OTHER_USER" };
  if (!result.__typename) {
    error = result.code;
    return redraw();
  }
  if (NOT_USED_UP.test(result.code)) {
    linkTrouble = reason(result);
    return redraw();
  }
  isLinkRequired = result.code === "LINK_REQUIRED";
  if (result.code) return endSignOn(reason(result));
  problem = t("signon.elsewhere"); // for a user who comes back to this view
  if (operation === "finishSignIn") return arrive(result);
  say(t("account.linked", { name }));
  location.replace("#/account");
}

/** Finish as soon as it is known who is signed in, if that matters. */
function finishWithSession() {
  if (!begun?.userId || me || !hasSession()) return finishSignOn();
  const stop = onSession(() => {
    stop();
    finishSignOn();
  });
}

export function openSignOn() {
  if (begun === undefined) {
    begun = takeBegun(returned.get("state"));
    finishWithSession();
  }
  const isLink = Boolean(begun?.userId);
  const title = () => t(isLink ? "account.identities" : "tab.signin");

  function goOn() {
    if (isLinkRequired) tab.set(BACK, "#/account");
    go(isLink && me ? "#/account" : "#/signin");
  }

  /** Sign in anew, without a password, and begin the link again. */
  function signInAgain() {
    isLinkRequired = true;
    signOut();
    goOn();
  }

  /** @param {any} event */
  function submit(event) {
    event.preventDefault();
    finishSignOn(event.target.currentPassword.value);
  }

  function passwordForm() {
    return h(
      "form",
      { class: "stack", onsubmit: submit },
      usernameField(me?.email),
      field("currentPassword", t("account.currentPassword"), { type: "password", autocomplete: "current-password", required: true }, linkTrouble),
      h("button", { class: "btn big full" }, t("account.identities")),
      button("second", t("account.signOut"), signInAgain),
    );
  }

  return {
    title,
    width: /** @type {"narrow"} */ ("narrow"),
    render: () => [
      h("h1", null, title()),
      problem
        ? notice("stop", "warning", problem, button("second", t(isLink && me ? "tab.account" : "tab.signin"), goOn))
        : error ? failure(error, () => finishSignOn()) : linkTrouble ? passwordForm() : h("p", null, t("signin.sending")),
      languageLinks(),
    ],
  };
}
