// @ts-check
/** One account: its data, its sign-in, a ban; or a new one. */
import { go, say, site } from "../../../page.js";
import { codeOf, me, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { askOnce, bones, button, failure, icon, notice } from "../../../parts.js";
import { opening } from "../../../slotstate.js";
import { commas, dayOf, deviceZone, sentences, t } from "../../../text.js";
import { identityList } from "../../signon.js";
import { Actions } from "../forms/actions.js";
import { Form } from "../forms/form.js";
import { groupField, groupsIn } from "../forms/groups.js";
import { similarGroups } from "../parts.js";
import { booked } from "./booked.js";
import { back, codePage, hasSignedIn, invitationLink, linkField, news, personTags } from "./parts.js";
import { relations } from "./relations.js";

const ROLES = ["MEMBER", "ORGANIZER", "ADMIN"];

/** @param {string} part "" for a new person, or an id, with "/give/" and a campaign to give a place in it */
export function openPerson(part) {
  const [userId, , campaignId = ""] = part.split("/");
  /** @type {any} */
  let user = userId ? null : { id: "", name: "", role: "MEMBER", groups: [] };
  let error = "";
  let form = user && formOf(user);
  const banForm = new Form("people", { reason: "" });
  /** What was done, by the part that it belongs to. @type {Record<string, string>} */
  let done = {};
  /** The invitation of a person, or of the one who was just created. @type {any} */
  let invitation = null;
  const actions = new Actions();
  /** @type {ReturnType<typeof booked> | null} */
  let places = null;
  const family = relations(() => user, () => load());
  const isAdmin = () => me?.role === "ADMIN";

  async function load() {
    try {
      const { node } = await run("user", { id: userId });
      user = node?.id ? node : null;
      form ??= user && formOf(user);
      places ??= user && !user.erased && booked(user, campaignId);
      error = user ? "" : "USER_NOT_FOUND";
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  if (userId) load();

  /** Say what was done. @param {string} part of the page @param {string} text */
  function finish(part, text) {
    done = { [part]: text };
    if (text) say(text);
    return load();
  }

  /**
   * Return what runs an operation for this account.
   * @param {string} part of the page that shows what was done, or why not
   * @param {string} name
   * @param {Record<string, any>} [variables]
   * @param {(result: any) => string} [toText] what was done; without a text, a new link is shown
   */
  const act = (part, name, variables = {}, toText = () => "") => async () => {
    done = {};
    const result = await actions.run(part, name, { id: user.id, ...variables });
    if (!result) return;
    const text = toText(result);
    if (result.invitationToken && !text) invitation = { user, ...result };
    await finish(part, text);
  };
  const mailed = () => t("people.mailedTo", { email: user.email });

  /** Ask by the name, and say which places others get and which children have nobody then. */
  function eraseQuestion() {
    const titles = (places?.next() ?? []).filter((each) => each.slot.status !== "CANCELLED").map((each) => each.slot.title);
    const frees = titles.length > 0 && t("people.eraseFrees", { count: titles.length, titles: titles.join(", ") });
    const alone = user.dependents.filter((/** @type {any} */ each) => each.guardians.length < 2);
    const leaves = alone.length > 0 && t("people.eraseLeaves", { names: commas(alone.map((/** @type {any} */ each) => each.name)) });
    return [t("people.eraseAsk", { name: user.name }), frees, leaves].filter(Boolean).join(" ");
  }

  async function erase() {
    news.text = t("people.erasedOne", user);
    if (await actions.run("erase", "eraseUser", { id: user.id }, news.text)) go("#/people");
    else news.text = "";
  }

  async function ban() {
    if (!(await banForm.send("banUser", () => ({ id: user.id, reason: banForm.text("reason") })))) return;
    banForm.set("reason", "");
    await load();
  }

  /** Send a change of the account; returns null if it did not work. @param {string} name @param {Record<string, any>} variables */
  async function send(name, variables) {
    const result = await form.send(name, () => variables);
    if (form.refusal?.code === "EMAIL_TAKEN") {
      form.note = "";
      form.fail("login", t("people.taken"));
    }
    return result;
  }

  async function save() {
    done = {};
    const name = form.text("name") ?? "";
    const login = form.text("login") ?? "";
    const groups = groupsIn(form.values.groups);
    const { role } = form.values;
    const address = login.includes("@") ? { email: login } : { username: login };
    if (!user.id) {
      const result = await send("createUser", { input: { name, ...address, groups, role, sendMail: Boolean(site.sendsMail) } });
      if (!result) return;
      invitation = { ...result, isMailed: site.sendsMail && result.user.email };
      form = formOf(user);
      say(t("people.createdOne", result.user));
      return;
    }
    const id = user.id;
    const isNew = { name: name !== user.name, login: login !== loginOf(user) };
    const { phone } = form.values;
    const isOtherPhone = phone !== (user.phone ?? "");
    /** @type {Array<[string, any]>} Until one is refused. */
    const changes = [
      ["updateUser", (isNew.name || isNew.login || isOtherPhone)
        && { input: { userId: id, ...(isNew.name && { name }), ...(isNew.login && address), ...(isOtherPhone && { phone }) } }],
      ["setGroups", [...groups].sort().join(",") !== [...user.groups].sort().join(",") && { input: { userId: id, groups } }],
      ["setUserRole", role !== user.role && { id, role }],
    ];
    for (const [operation, variables] of changes) if (variables && !(await send(operation, variables))) return load();
    await finish("save", t("form.saved"));
  }

  /** @param {string} part */
  function outcome(part) {
    return [actions.problem(part), done[part] && h("p", { class: "row good" }, icon("tick"), h("span", null, done[part]))];
  }

  /** @param {string} part @param {...any} children */
  function section(part, ...children) {
    return h(
      "section",
      { class: "sheet stack form", "aria-labelledby": `part-${part}`, "data-key": part },
      h("h2", { id: `part-${part}` }, t(`people.part.${part}`)),
      children,
      outcome(part),
    );
  }

  function accountPart() {
    // An address leads to a new password: an organizer must not become a member.
    const isLoginFixed = hasSignedIn(user) && !isAdmin();
    return form.render(t("people.part.save"), [
      h(
        "div",
        { class: "pair" },
        form.field("name", { label: t("signin.name"), autocomplete: "off" }),
        form.field("login", {
          autocomplete: "off",
          autocapitalize: "none",
          spellcheck: "false",
          readonly: isLoginFixed,
          help: isLoginFixed && t(user.id === me?.id ? "people.loginSelf" : "people.loginByAdmin"),
        }),
        groupField(form, "groups"),
        user.id && form.field("phone", { type: "tel", autocomplete: "off" }),
        isAdmin() && form.select("role", ROLES.map((role) => [role, t(`role.${role}`)])),
      ),
    ], { submit: t(user.id ? "form.save" : "people.create"), onsubmit: save, more: outcome("save") });
  }

  function registeredPart() {
    const claim = (/** @type {string} */ key, /** @type {string} */ kind, /** @type {boolean | null} */ cancelPlaces) =>
      button(kind, t(key), act("registered", "claimUser", { cancelPlaces }, (result) => (result.invitationToken ? "" : mailed())));
    const holdsPlaces = actions.problems.get("registered")?.code === "ACCOUNT_HOLDS_PLACES";
    const claims = holdsPlaces
      ? [claim("people.claimStay", "second", false), claim("people.claimCancel", "final", true)]
      : claim("people.claim", "second", null);
    return section(
      "registered",
      h("p", null, t("people.registeredHelp")),
      h("div", { class: "row" }, button("", t("people.vouch"), act("registered", "vouchForUser")), isAdmin() && claims),
    );
  }

  function invitationPart() {
    if (!invitation) return null;
    const until = opening(Date.parse(invitation.invitationExpiresAt), deviceZone);
    return linkField(
      t("people.linkFor", { name: invitation.user.name }),
      invitationLink(invitation.invitationToken),
      sentences([
        t("people.linkUntil", { until }),
        t("people.codeIs", { address: codePage(), code: invitation.invitationToken.replaceAll("-", "\u2011") }),
        invitation.isMailed && t("people.linkMailed"),
      ]),
    );
  }

  function signinPart() {
    const mayReset = user.hasPassword && isAdmin() && user.id !== me.id;
    return section(
      "signin",
      h("p", null, t(
        !loginOf(user) ? "people.noLogin" : user.hasPassword ? "people.hasPassword" : user.signsInAtProvider ? "people.atProvider" : "people.hasNoPassword",
      )),
      user.hasPassword && h("p", { class: "small soft" }, t(user.id === me?.id ? "people.resetSelf" : mayReset ? "people.resetHelp" : "people.resetByAdmin")),
      user.identities?.[0] && identityList(user.identities, (identity) => act("signin", "unlinkUserSignIn", { identity }, () => t("account.unlinked"))()),
      invitationPart(),
      h(
        "div",
        { class: "row" },
        !hasSignedIn(user) && loginOf(user) && [
          site.sendsMail && user.email && button("", t("people.inviteByMail"), act("signin", "inviteUser", { sendMail: true }, mailed)),
          button("second", t("people.invite"), act("signin", "inviteUser", { sendMail: false })),
        ],
        mayReset && button("second", t("people.reset"), act("signin", "createPasswordReset")),
        button("second", t("people.signOut"), act("signin", "endUserSessions", {}, ({ endedSessions: count }) => t("people.signedOut", { count }))),
      ),
    );
  }

  function banPart() {
    if (user.banned) return section(
      "ban",
      notice(
        "stop",
        "lock",
        [t("people.bannedSince", { day: dayOf(user.bannedAt, deviceZone) }), user.banReason && h("br"), user.banReason],
        button("second", t("people.unban"), act("ban", "unbanUser")),
      ),
    );
    return banForm.render(
      t("people.part.ban"),
      [h("p", { class: "soft" }, t("people.banHelp")), banForm.field("reason", { label: t("people.banReason"), autocomplete: "off" })],
      { submit: t("people.part.ban"), kind: "final", onsubmit: ban },
    );
  }

  function render() {
    if (!user) return [back(), error ? failure(error, load) : bones(4)];
    if (!user.id) {
      return [
        back(),
        h("h1", null, t("people.new")),
        h("p", { class: "soft" }, t("people.newHelp")),
        invitation && notice(
          "yours",
          "tick",
          t("people.createdOne", { name: invitation.user.name }),
          h("a", { class: "btn second", href: `#/people/${invitation.user.id}` }, t("people.open")),
        ),
        invitationPart(),
        accountPart(),
      ];
    }
    const since = t("people.since", { day: dayOf(user.createdAt, deviceZone) });
    const isSelf = user.id === me?.id;
    const mayChange = !user.erased && (isAdmin() || user.role === "MEMBER" || isSelf);
    return [
      back(campaignId),
      h(
        "div",
        { class: "top" },
        h("h1", null, user.name),
        h("p", { class: "row" }, personTags(user), h("span", { class: "soft" }, [...user.groups, since].join(" · "))),
      ),
      user.emailUndeliverableSince && notice("stop", "warning", t("people.undeliverableSince", { day: dayOf(user.emailUndeliverableSince, deviceZone) })),
      similarGroups(user.similarGroups),
      places?.render(),
      mayChange
        ? [
            user.selfRegistered ? registeredPart() : accountPart(),
            signinPart(),
            family.render(),
            !isSelf && banPart(),
            !isSelf && isAdmin() && section(
              "erase",
              h("p", { class: "soft" }, t("people.eraseHelp")),
              askOnce(
                `erase ${user.id}`,
                "final",
                { label: t("people.erase"), question: eraseQuestion(), yes: t("people.eraseYes"), no: t("form.back") },
                erase,
              ),
            ),
          ]
        : notice("", "lock", t(user.erased ? "people.erasedHelp" : "people.adminOnly")),
    ];
  }

  return { title: () => user?.name || t("people.new"), render, leave: () => places?.leave() };
}

/** @param {any} user */
function formOf(user) {
  return new Form("people", { name: user.name, login: loginOf(user), phone: user.phone ?? "", groups: user.groups.join(", "), role: user.role });
}

/** @param {any} user */
function loginOf(user) {
  return user.email ?? user.username ?? "";
}
