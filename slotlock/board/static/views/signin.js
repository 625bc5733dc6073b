// @ts-check
/** Sign in or register, and why now. */
import { BUSY, home, resultOf, sendUntilAnswered, setSession } from "../client.js";
import { BACK, say, site } from "../page.js";
import { reason } from "../bookings.js";
import { h, redraw } from "../kernel.js";
import { button, checkbox, field, languageLinks, notice } from "../parts.js";
import { begin } from "../provider.js";
import { tab } from "../storage.js";
import { deviceZone, problemText, t, timeOf } from "../text.js";

/** Begin a session, and go on where the user wanted to be. @param {any} session */
export function arrive(session) {
  setSession(session);
  const back = tab.get(BACK) ?? "";
  tab.remove(BACK);
  location.replace(back.startsWith("#") ? back : home());
}

/** Say when a mail with a code leaves. @param {{email: string, dueAt: string}} mail */
export function codeSent({ email, dueAt }) {
  const at = Date.parse(dueAt);
  return at - Date.now() > 60000 ? t("account.codeLater", { email, time: timeOf(dueAt, deviceZone) }) : t("account.codeSent", { email });
}

/** Return a page that sends one thing at a time: what makes its handlers, and its buttons. */
export function sendingPage() {
  const page = {
    isSending: false,
    /** Return a handler that runs a task unless one is running. @param {(event: any) => Promise<any>} task */
    once: (task) => async (/** @type {Event} */ event) => {
      event.preventDefault();
      if (page.isSending) return;
      page.isSending = true;
      const done = task(event);
      redraw();
      await done;
      page.isSending = false;
      redraw();
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid]"))?.focus());
    },
    /** Return the button of a form. @param {string} kind @param {string} label */
    button: (kind, label) => h("button", { class: `btn ${kind}`, "aria-disabled": page.isSending && "true" }, page.isSending ? t("signin.sending") : label),
  };
  return page;
}

/** Return what shows the field of a password, and a box that shows what is typed there. */
export function passwordField() {
  let isShown = false;
  return (/** @type {string} */ label, /** @type {boolean} */ isNew, /** @type {string} */ error) => [
    field(
      "password",
      label,
      { type: isShown ? "text" : "password", autocomplete: isNew ? "new-password" : "current-password", required: true },
      error,
      isNew ? t("signin.passwordRules", site.passwordRules) : "",
    ),
    checkbox("check", t("signin.show"), { checked: isShown }, (isChecked) => (isShown = isChecked)),
  ];
}

export function openSignIn() {
  let isRegistering = false;
  const page = sendingPage();
  const passwordFields = passwordField();
  let isForgotten = false;
  /** The session of a new account whose address is to be confirmed. @type {any} */
  let created = null;
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
  async function submit({ target }) {
    const given = Object.fromEntries(new FormData(target));
    const { email, password } = given;
    const [name, input] = isRegistering ? ["register", given] : ["login", { email, password }];
    errors = {};
    const result = await sendUntilAnswered(() => resultOf(name, { input }), {
      isWanted: () => target.isConnected,
      onTrouble: () => {
        errors = { password: t("signin.busy") };
        redraw();
      },
      codes: BUSY,
    });
    if (!result) return;
    errors = {};
    if (result.verificationMail) {
      created = result;
      setSession(created);
      return sayCode({ ...created.user, ...created.verificationMail });
    }
    if (!result.code) return arrive(result);
    for (const problem of result.fields ?? []) errors[problem.field] = problemText(problem);
    if (!Object.keys(errors).length) errors.password = reason(result);
  }

  /** Say what came of the request for a mail with a code. @param {any} result without a due time if none is on its way */
  function sayCode(result) {
    mail = result.dueAt ? { sent: codeSent(result) } : { error: t("signin.codeNotSent") };
    say(mail.sent ?? mail.error ?? "");
  }

  const requestCode = page.once(async () => sayCode(await resultOf("requestEmailVerification", {})));

  const confirmation = () => [
    h("h1", null, title()),
    mail.sent ? notice("yours", "tick", mail.sent) : notice("stop", "warning", mail.error, button("second", t("mail.retry"), requestCode)),
    button("big full", t("signin.goOn"), () => arrive(created)),
  ];

  /** @param {any} event */
  async function requestMail({ target }) {
    const email = String(new FormData(target).get("email")).trim();
    mail = {};
    const result = await resultOf("requestPasswordReset", { email });
    if (result.code) {
      mail.error = reason(result);
    } else {
      mail.sent = t("signin.mailSent", { email, minutes: result.validMinutes });
      say(mail.sent);
    }
  }

  /** @param {string} provider */
  const goTo = (provider) => async () => {
    errors = {};
    trouble = await begin(provider);
  };

  function providerButtons() {
    if (!providers.length) return null;
    const kind = areProvidersFirst ? "big full" : "second big full";
    return h(
      "div",
      { class: "stack", "data-key": "providers" },
      providers.map((/** @type {any} */ { id, name }) => button(
        kind,
        t("signin.with", { name }),
        page.once(goTo(id)),
        { "aria-disabled": page.isSending && "true" },
      )),
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
      { class: "sheet stack", onsubmit: page.once(requestMail), novalidate: true },
      h("p", null, t("signin.mailHelp")),
      field("mailTo", t("signin.email"), { name: "email", type: "email", autocomplete: "username", required: true, value: typed }, mail.error),
      h("div", null, page.button("second", t("signin.sendMail"))),
    );
  }

  function switchMode() {
    isRegistering = !isRegistering;
    errors = {};
    redraw();
  }

  const title = () => t(created ? "signin.created" : isRegistering ? "signin.register" : "tab.signin");

  return {
    title,
    width: /** @type {"narrow"} */ ("narrow"),
    render: () => created ? confirmation() : [
      h("h1", null, title()),
      areProvidersFirst && providerButtons(),
      h(
        "form",
        { class: "stack", onsubmit: page.once(submit), novalidate: true },
        isRegistering && field("name", t("signin.name"), { autocomplete: "name", required: true }, errors.name),
        field(
          "email",
          t(isRegistering ? "signin.email" : "people.login"),
          { type: isRegistering ? "email" : "text", autocomplete: "username", inputmode: "email", autocapitalize: "none", required: true },
          errors.email,
        ),
        passwordFields(t("signin.password"), isRegistering, errors.password),
        page.button(`big full ${areProvidersFirst ? "second" : ""}`, title()),
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
        h("p", null, h("a", { class: "btn plain", href: "#/code" }, t("signin.code"))),
        isRegistrationOpen && h("p", null, button("plain", t(isRegistering ? "signin.haveAccount" : "signin.new"), switchMode)),
      ),
      languageLinks(),
    ],
  };
}
