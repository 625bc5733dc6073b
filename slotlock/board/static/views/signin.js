// @ts-check
/** Sign in or register, and why now. */
import { home, run, setSession } from "../client.js";
import { BACK, say, site } from "../app.js";
import { reason } from "../bookings.js";
import { h, redraw } from "../kernel.js";
import { button, field, languageLinks, notice } from "../parts.js";
import { tab } from "../storage.js";
import { errorText, problemText, t } from "../text.js";
import { begin } from "./signon.js";

/** Begin a session, and go on where the user wanted to be. @param {any} session */
export function arrive(session) {
  setSession(session);
  const back = tab.get(BACK) ?? "";
  tab.remove(BACK);
  location.replace(back.startsWith("#") ? back : home());
}

export function openSignIn() {
  let isRegistering = false;
  let isSending = false;
  let isPasswordShown = false;
  let isForgotten = false;
  const { passwordSignIn, registration, signInProviders: providers } = site;
  const isRegistrationOpen = passwordSignIn && registration !== "CLOSED" && registration !== "INVITED";
  const areProvidersFirst = providers.length > 0 && !isRegistrationOpen;
  /** What went wrong on the way to a provider. */
  let trouble = "";
  /** What came of the request for a mail. @type {{error?: string, sent?: string}} */
  let mail = {};
  /** @type {Record<string, string>} */
  let errors = {};

  /** @param {any} event */
  async function submit(event) {
    event.preventDefault();
    if (isSending) return;
    const given = Object.fromEntries(new FormData(event.target));
    const name = isRegistering ? "register" : "login";
    isSending = true;
    errors = {};
    redraw();
    try {
      const send = async () => (await run(name, { input: isRegistering ? given : { email: given.email, password: given.password } }))[name];
      let result = await send();
      while (result.code === "SERVER_BUSY") {
        const { retryAfterMs } = result;
        errors = { password: t("signin.busy") };
        redraw();
        await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
        if (!event.target.isConnected) return;
        result = await send();
      }
      errors = {};
      if (result.__typename === "Session") {
        arrive(result);
        return;
      }
      for (const problem of result.fields ?? []) errors[problem.field] = problemText(problem);
      if (!Object.keys(errors).length) errors.password = reason(result);
    } catch (error) {
      const code = /** @type {any} */ (error).code;
      errors.password = errorText(code);
    } finally {
      isSending = false;
      redraw();
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid]"))?.focus());
    }
  }

  /** @param {any} event */
  async function requestMail(event) {
    event.preventDefault();
    if (isSending) return;
    const email = String(new FormData(event.target).get("email")).trim();
    isSending = true;
    mail = {};
    redraw();
    try {
      const result = (await run("requestPasswordReset", { email })).requestPasswordReset;
      mail = result.validMinutes ? { sent: t("signin.mailSent", { email, minutes: result.validMinutes }) } : { error: reason(result) };
    } catch (caught) {
      const code = /** @type {any} */ (caught).code;
      mail = { error: errorText(code) };
    }
    isSending = false;
    redraw();
    if (mail.sent) say(mail.sent);
  }

  /** @param {string} provider */
  const goTo = (provider) => async () => {
    if (isSending) return;
    isSending = true;
    redraw();
    trouble = await begin(provider);
    isSending = false;
    redraw();
  };

  function providerButtons() {
    if (!providers.length) return null;
    const kind = areProvidersFirst ? "big full" : "second big full";
    return h(
      "div",
      { class: "stack", "data-key": "providers" },
      providers.map((/** @type {any} */ { id, name }) => button(kind, t("signin.with", { name }), goTo(id), { "aria-disabled": isSending && "true" })),
      trouble && notice("stop", "warning", trouble),
      areProvidersFirst && h("p", { class: "soft" }, t(passwordSignIn ? "signin.orPassword" : "signin.passwordOfOrganizers")),
    );
  }

  function forgotten() {
    if (!site.sendsMail) return notice("", "person", t("signin.forgottenHelp"));
    if (mail.sent) return notice("yours", "tick", mail.sent);
    const typed = /** @type {HTMLInputElement | null} */ (document.getElementById("email"))?.value ?? "";
    return h(
      "form",
      { class: "sheet stack", onsubmit: requestMail, novalidate: true },
      h("p", null, t("signin.mailHelp")),
      field("mailTo", t("signin.email"), { name: "email", type: "email", autocomplete: "username", required: true, value: typed }, mail.error),
      h("div", null, h("button", { class: "btn second", "aria-disabled": isSending && "true" }, t(isSending ? "signin.sending" : "signin.sendMail"))),
    );
  }

  function switchMode() {
    isRegistering = !isRegistering;
    errors = {};
    redraw();
  }

  return {
    title: () => t(isRegistering ? "signin.register" : "signin.title"),
    width: /** @type {"narrow"} */ ("narrow"),
    render: () => [
      h("h1", null, t(isRegistering ? "signin.register" : "signin.title")),
      areProvidersFirst && providerButtons(),
      h(
        "form",
        { class: "stack", onsubmit: submit, novalidate: true },
        isRegistering && field("name", t("signin.name"), { autocomplete: "name", required: true }, errors.name),
        field("email", t(isRegistering ? "signin.email" : "people.login"), { type: isRegistering ? "email" : "text", autocomplete: "username", inputmode: "email", autocapitalize: "none", required: true }, errors.email),
        field("password", t("signin.password"), { type: isPasswordShown ? "text" : "password", autocomplete: isRegistering ? "new-password" : "current-password", required: true }, errors.password, isRegistering ? t("signin.passwordRules", site.passwordRules) : ""),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: isPasswordShown, onchange: (/** @type {any} */ event) => {
          isPasswordShown = event.target.checked;
          redraw();
        } }), t("signin.show")),
        h("button", { class: `btn big full ${areProvidersFirst ? "second" : ""}`, "aria-disabled": isSending && "true" }, t(isSending ? "signin.sending" : isRegistering ? "signin.register" : "signin.title")),
      ),
      !areProvidersFirst && providerButtons(),
      h(
        "div",
        { class: "stack tight" },
        !isRegistering && h("p", null, button("plain", t("signin.forgotten"), () => {
          isForgotten = !isForgotten;
          redraw();
        }, { "aria-expanded": String(isForgotten) })),
        isForgotten && !isRegistering && forgotten(),
        isRegistrationOpen && h("p", null, button("plain", t(isRegistering ? "signin.haveAccount" : "signin.new"), switchMode)),
      ),
      languageLinks(),
    ],
  };
}
