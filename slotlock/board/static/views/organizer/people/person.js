// @ts-check
/** One account: its data, its sign-in, a ban; or a new one. */
import { go, say, site } from "../../../app.js";
import { reason } from "../../../bookings.js";
import { codeOf, me, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { bones, button, failure, field, icon, notice } from "../../../parts.js";
import { opening } from "../../../rows.js";
import { dayOf, deviceZone, errorText, problemText, t } from "../../../text.js";
import { back, hasSignedIn, invitationLink, linkField, personTags } from "./parts.js";

const ROLES = ["MEMBER", "ORGANIZER", "ADMIN"];

/** @param {string} userId "" for a new person */
export function openPerson(userId) {
  /** @type {any} */
  let user = userId ? null : { id: "", name: "", role: "MEMBER", groups: [] };
  let error = "";
  /** Problems by the id of their field, and what was done by the part it belongs to. @type {Record<string, string>} */
  let errors = {};
  /** @type {Record<string, string>} */
  let done = {};
  /** The invitation of a person, or of the one who was just created. @type {{user: any, link: string, until: string, isMailed?: boolean} | null} */
  let invitation = null;
  let isSending = false;
  let isAsking = false;
  let holdsPlaces = false;

  async function load() {
    try {
      const { node } = await run("user", { id: userId });
      user = node?.id ? node : null;
      error = user ? "" : "USER_NOT_FOUND";
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  if (userId) load();

  /** Run one change after the other until one is refused. @param {string} part of the page @param {() => Promise<void>} task */
  async function attempt(part, task) {
    if (isSending) return;
    isSending = true;
    errors = {};
    done = {};
    redraw();
    try {
      await task();
    } catch (caught) {
      errors[part] ??= errorText(codeOf(caught));
    }
    isSending = false;
    redraw();
    for (const text of Object.values(done)) say(text);
    requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid]"))?.focus());
  }

  /**
   * Run an operation; returns null after a refusal, which stands at its field or else at the part.
   * @param {string} part @param {string} name @param {Record<string, any>} variables
   */
  async function send(part, name, variables) {
    const result = (await run(name, variables))[name];
    if (!result.code) return result;
    for (const problem of result.fields ?? []) errors[FIELD_OF[problem.field] ?? part] = problemText(problem);
    if (result.code === "EMAIL_TAKEN") errors.login = t("people.taken");
    else if (!result.fields?.length) errors[part] = reason(result);
    return null;
  }

  /** @param {any} event */
  function submit(event) {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    const name = String(given.name).trim();
    const login = String(given.login).trim();
    const groups = String(given.groups).split(/[,;]/).map((each) => each.trim()).filter(Boolean);
    const role = String(given.role ?? user.role);
    /** @type {Record<string, string>} */
    const address = login.includes("@") ? { email: login } : { username: login };
    attempt("save", () => (user.id ? save(name, login, address, groups, role) : create({ name, ...address, groups, role })));
  }

  /** @param {string} name @param {string} login @param {Record<string, string>} address @param {string[]} groups @param {string} role */
  async function save(name, login, address, groups, role) {
    const id = user.id;
    if (name !== user.name || login !== loginOf(user)) {
      const input = { userId: id, ...(name !== user.name && { name }), ...(login !== loginOf(user) && address) };
      const result = await send("save", "updateUser", { input });
      if (!result) return;
      user = result.user;
    }
    if ([...groups].sort().join(",") !== [...user.groups].sort().join(",")) {
      const result = await send("save", "setGroups", { input: { userId: id, groups } });
      if (!result) return;
      user = result;
    }
    if (role !== user.role) {
      const result = await send("save", "setUserRole", { id, role });
      if (!result) return;
      user = result;
    }
    done.save = t("people.saved");
  }

  /** @param {Record<string, any>} input */
  async function create(input) {
    const result = await send("save", "createUser", { input: { ...input, sendMail: Boolean(site.sendsMail) } });
    if (!result) return;
    invitation = { user: result.user, link: invitationLink(result.invitationToken), until: result.invitationExpiresAt, isMailed: site.sendsMail && Boolean(result.user.email) };
    say(t("people.createdOne", { name: result.user.name }));
    /** @type {HTMLFormElement | null} */ (document.querySelector("form"))?.reset();
  }

  const invite = (/** @type {boolean} */ sendMail) => () => attempt("signin", async () => {
    const result = await send("signin", "inviteUser", { id: user.id, sendMail });
    if (result && sendMail) {
      user = { ...user, emailUndeliverableSince: null };
      done.signin = t("people.mailedTo", { email: user.email });
    } else if (result) invitation = { user, link: invitationLink(result.invitationToken), until: result.invitationExpiresAt };
  });
  const reset = () => attempt("signin", async () => {
    const result = await send("signin", "createPasswordReset", { id: user.id });
    if (result) invitation = { user, link: invitationLink(result.resetToken), until: result.resetExpiresAt };
  });
  const signOutEverywhere = () => attempt("signin", async () => {
    const result = await send("signin", "endUserSessions", { id: user.id });
    if (result) done.signin = t("people.signedOut", { count: result.endedSessions });
  });
  const vouch = () => attempt("registered", async () => {
    user = (await send("registered", "vouchForUser", { id: user.id })) ?? user;
  });
  const claim = (/** @type {boolean | null} */ cancelPlaces) => () => attempt("registered", async () => {
    const result = await send("registered", "claimUser", { id: user.id, cancelPlaces });
    holdsPlaces = !result;
    if (!result) return;
    user = result.user;
    if (result.invitationToken) invitation = { user, link: invitationLink(result.invitationToken), until: result.invitationExpiresAt };
    else done.signin = t("people.mailedTo", { email: user.email });
  });
  const unban = () => attempt("ban", async () => {
    user = (await send("ban", "unbanUser", { id: user.id })) ?? user;
  });
  /** @param {any} event */
  const ban = (event) => {
    event.preventDefault();
    const given = String(new FormData(event.target).get("reason")).trim();
    attempt("ban", async () => {
      user = (await send("reason", "banUser", { id: user.id, reason: given || null })) ?? user;
    });
  };
  const erase = () => attempt("erase", async () => {
    if (await send("erase", "eraseUser", { id: user.id })) go("#/people");
  });

  /** @param {string} part */
  function outcome(part) {
    if (errors[part]) return h("p", { class: "error", role: "alert" }, icon("warning"), h("span", null, errors[part]));
    return done[part] && h("p", { class: "row good" }, icon("tick"), h("span", null, done[part]));
  }

  /** @param {string} part @param {...any} children */
  function section(part, ...children) {
    return h("section", { class: "sheet stack", "aria-labelledby": `part-${part}`, "data-key": part }, h("h2", { id: `part-${part}` }, t(`people.part.${part}`)), children, outcome(part));
  }

  function form() {
    // An address leads to a new password: an organizer must not become a member.
    const isLoginFixed = hasSignedIn(user) && me?.role !== "ADMIN";
    const options = ROLES.map((role) => h("option", { value: role, selected: role === user.role }, t(`role.${role}`)));
    return section(
      "save",
      h(
        "form",
        { class: "stack", onsubmit: submit, novalidate: true },
        h(
          "div",
          { class: "pair" },
          field("name", t("signin.name"), { value: user.name, autocomplete: "off" }, errors.name),
          field("login", t("people.login"), { value: loginOf(user), autocomplete: "off", autocapitalize: "none", spellcheck: "false", readonly: isLoginFixed }, errors.login, isLoginFixed && t(user.id === me?.id ? "people.loginSelf" : "people.loginByAdmin")),
          field("groups", t("people.groups"), { value: user.groups.join(", "), autocomplete: "off" }, errors.groups),
          me?.role === "ADMIN" && field("role", t("people.role"), { tag: "select", children: options }, errors.role),
        ),
        h("p", null, h("button", { class: "btn", "aria-disabled": isSending && "true" }, t(user.id ? "people.save" : "people.create"))),
      ),
    );
  }

  function registeredPart() {
    const claims = holdsPlaces ? [button("second", t("people.claimStay"), claim(false)), button("final", t("people.claimCancel"), claim(true))] : button("second", t("people.claim"), claim(null));
    return section("registered", h("p", null, t("people.registeredHelp")), h("div", { class: "row" }, button("", t("people.vouch"), vouch), me?.role === "ADMIN" && claims));
  }

  function invitationPart() {
    if (!invitation) return null;
    const until = opening(Date.parse(invitation.until), deviceZone);
    return linkField(t("people.linkFor", { name: invitation.user.name }), invitation.link, [t("people.linkUntil", { until }), invitation.isMailed && t("people.linkMailed")].filter(Boolean).join(" "));
  }

  function signinPart() {
    const mayReset = user.hasPassword && me?.role === "ADMIN" && user.id !== me.id;
    return section(
      "signin",
      h("p", null, t(user.hasPassword ? "people.hasPassword" : user.signsInAtProvider ? "people.atProvider" : "people.hasNoPassword")),
      user.hasPassword && h("p", { class: "small soft" }, t(user.id === me?.id ? "people.resetSelf" : mayReset ? "people.resetHelp" : "people.resetByAdmin")),
      invitationPart(),
      h("div", { class: "row" }, !hasSignedIn(user) && site.sendsMail && user.email && button("", t("people.inviteByMail"), invite(true)), !hasSignedIn(user) && button("second", t("people.invite"), invite(false)), mayReset && button("second", t("people.reset"), reset), button("second", t("people.signOut"), signOutEverywhere)),
    );
  }

  function banPart() {
    if (!user.banned) {
      return section(
        "ban",
        h("p", { class: "soft" }, t("people.banHelp")),
        h("form", { class: "stack", onsubmit: ban, novalidate: true }, field("reason", t("people.banReason"), { autocomplete: "off" }, errors.reason), h("p", null, h("button", { class: "btn final" }, t("people.ban")))),
      );
    }
    return section("ban", notice("stop", "lock", [t("people.bannedSince", { day: dayOf(user.bannedAt, deviceZone) }), user.banReason && h("br"), user.banReason], button("second", t("people.unban"), unban)));
  }

  function erasePart() {
    const ask = (/** @type {boolean} */ next) => () => {
      isAsking = next;
      redraw();
    };
    if (!isAsking) return section("erase", h("p", { class: "soft" }, t("people.eraseHelp")), h("p", null, button("final", t("people.erase"), ask(true))));
    return section("erase", notice("stop", "warning", t("people.eraseAsk", { name: user.name }), h("div", { class: "row" }, button("second", t("people.back"), ask(false)), button("final", t("people.eraseYes"), erase))));
  }

  function render() {
    if (!user) return [back(), error ? failure(error, load) : bones(4)];
    if (!user.id) {
      return [back(), h("h1", null, t("people.new")), h("p", { class: "soft" }, t("people.newHelp")), invitation && notice("yours", "tick", t("people.createdOne", { name: invitation.user.name }), h("a", { class: "btn second", href: `#/people/${invitation.user.id}` }, t("people.open"))), invitationPart(), form()];
    }
    const isSelf = user.id === me?.id;
    const mayChange = !user.erased && (me?.role === "ADMIN" || user.role === "MEMBER" || isSelf);
    return [
      back(),
      h("div", { class: "top" }, h("h1", null, user.name), h("p", { class: "row" }, personTags(user))),
      user.emailUndeliverableSince && notice("stop", "warning", t("people.undeliverableSince", { day: dayOf(user.emailUndeliverableSince, deviceZone) })),
      site.sendsMail && h("p", null, h("a", { href: `#/mail/${user.id}` }, t("people.mails"))),
      !mayChange && notice("", "lock", t(user.erased ? "people.erasedHelp" : "people.adminOnly")),
      ...(mayChange ? [user.selfRegistered ? registeredPart() : form(), signinPart(), !isSelf && banPart(), !isSelf && me?.role === "ADMIN" && erasePart()] : []),
    ];
  }

  return { title: () => user?.name || t("people.new"), render };
}

/** The field of the page for a field of the API. */
const FIELD_OF = /** @type {Record<string, string>} */ ({ name: "name", email: "login", username: "login", groups: "groups", role: "role", reason: "reason" });

/** @param {any} user */
function loginOf(user) {
  return user.email ?? user.username ?? "";
}
