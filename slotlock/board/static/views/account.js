// @ts-check
/** My account: language, colors, teams, sessions, password, my data, and the way out. */
import { reason } from "../bookings.js";
import { hasSession, lostAt, me, newKey, onSession, readFile, resultOf, run, sendUntilAnswered, signOut } from "../client.js";
import { BACK, go, say, site } from "../page.js";
import { h, redraw } from "../kernel.js";
import { askOnce, bones, button, checkbox, failure, field, icon, notice, saveFile, usernameField, whose } from "../parts.js";
import { opening } from "../slotstate.js";
import { readPeople, shows } from "../people.js";
import { begin } from "../provider.js";
import { SCHEMES, scheme, showScheme } from "../scheme.js";
import { tab } from "../storage.js";
import { readerOf } from "../store.js";
import { LANGUAGES, chooseLanguage, commas, dayOf, deviceZone, errorText, language, listOf, t } from "../text.js";
import { codeSent } from "./signin.js";
import { identityList } from "./signon.js";

/** @param {string} [code] that was mailed to the address of the account */
export function openAccount(code) {
  if (code) history.replaceState(null, "", "#/account");
  /** @type {any} */
  let account = null;
  /** The last answer, by the part of the page that asked. @type {Record<string, any>} */
  const answers = {};

  /** The mails that were chosen here: what is read may be older. @type {Record<string, boolean>} */
  const chosen = {};

  const load = readerOf(async () => {
    if (!me) return;
    readPeople();
    account = await run("account");
  });
  load();
  const stopSession = onSession(() => (me ? account ?? load() : redraw()));

  /**
   * Run a change, say what came of it at its part of the page, and read all anew.
   * @param {string} part @param {string} name @param {Record<string, any>} variables @param {(result: any) => string} toText
   * @returns {Promise<boolean>} whether it was done
   */
  async function change(part, name, variables, toText) {
    delete answers[part];
    const send = () => resultOf(name, variables);
    // A team that another request changes is asked again; what is no matter of teams is sent once.
    const result = (await (part === "teams" ? sendUntilAnswered(send, { isWanted: () => !lostAt }) : send())) ?? { code: "OFFLINE" };
    const isDone = !result.code;
    answers[part] = isDone ? { kind: "yours", text: toText(result) } : { kind: "stop", text: reason(result) };
    say(answers[part].text);
    if (isDone) await load();
    redraw();
    return isDone;
  }

  /** @param {string} id @param {any} content */
  function section(id, ...content) {
    const { kind, text } = answers[id] ?? {};
    return h(
      "section",
      { class: "sheet stack", "aria-labelledby": id, "data-key": id },
      h("h2", { id }, t(`account.${id}`)),
      content,
      text && notice(kind, kind === "yours" ? "tick" : "warning", text),
    );
  }

  /**
   * Return a form whose values are sent by a function; it becomes empty if that is done.
   * @param {string} kind @param {string} label @param {(values: any) => Promise<boolean>} send @param {any[]} fields
   */
  function form(kind, label, send, ...fields) {
    const onsubmit = async (/** @type {any} */ event) => {
      event.preventDefault();
      const { target } = event;
      if (await send(Object.fromEntries(new FormData(target)))) target.reset();
    };
    return h("form", { class: kind, onsubmit }, fields, h("div", null, h("button", { class: "btn second" }, label)));
  }

  function looks() {
    const choose = async (/** @type {any} */ event) => {
      await chooseLanguage(event.target.value);
      redraw();
      if (me) await change("looks", "updateMe", { locale: language }, () => t("account.languageSaved"));
    };
    return section(
      "looks",
      field("language", t("account.language"), {
        tag: "select",
        onchange: choose,
        children: Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code, selected: code === language }, name)),
      }),
      h(
        "fieldset",
        { class: "stack tight" },
        h("legend", null, h("strong", null, t("account.scheme"))),
        h(
          "div",
          { class: "row" },
          SCHEMES.map((value) => checkbox(
            "chip",
            t(`account.scheme.${value}`),
            { type: "radio", name: "scheme", value, checked: scheme() === value },
            () => showScheme(value),
          )),
        ),
      ),
    );
  }

  function mails() {
    /** @param {string} id */
    const choice = (id) => checkbox("check", t(`account.${id}`), { id, checked: chosen[id] ?? account.me[id] }, async (isChecked) => {
      chosen[id] = isChecked;
      if (await change("mails", "updateMe", { [id]: isChecked }, () => t("account.languageSaved"))) return;
      delete chosen[id];
      redraw();
    });
    return section("mails", h("p", { class: "soft" }, t("account.mailsHelp")), ["wantsReminders", "wantsAnnouncements"].map(choice));
  }

  function phone() {
    // What was typed stays: the form must not become empty.
    const send = (/** @type {any} */ { phone: typed }) => change("phone", "updateMe", { phone: typed }, () => t("form.saved")).then(() => false);
    return section("phone", form(
      "stack",
      t("account.savePhone"),
      send,
      field(
        "phoneNumber",
        t("account.phoneNumber"),
        { name: "phone", type: "tel", autocomplete: "tel", value: account.me.phone ?? "" },
        "",
        t("account.phoneHelp"),
      ),
    ));
  }

  function sessions() {
    const others = account.mySessions.filter((/** @type {any} */ each) => !each.current);
    const row = (/** @type {any} */ each) => h(
      "li",
      { "data-key": each.id },
      h(
        "p",
        null,
        h("strong", null, deviceOf(each.client)),
        each.current && [" ", h("span", { class: "tag yours" }, t("account.here"))],
        h("br"),
        h("span", { class: "soft" }, t("account.lastUsed", { time: opening(each.lastUsedAt, deviceZone) })),
      ),
      !each.current && button(
        "second",
        [t("account.signOutThere"), whose(deviceOf(each.client))],
        () => change("sessions", "endSession", { id: each.id }, () => t("account.signedOutThere")),
      ),
    );
    return section(
      "sessions",
      h("ul", { class: "frame list" }, account.mySessions.map(row)),
      others.length > 1 && h(
        "div",
        null,
        button("second", t("account.signOutOthers"), () => change("sessions", "endOtherSessions", {}, () => t("account.signedOutThere"))),
      ),
    );
  }

  function identities() {
    const linked = account.me.identities ?? [];
    const { signInProviders: providers } = site;
    if (!linked.length && !providers.length) return null;
    /** @param {string} id */
    const link = (id) => async () => {
      delete answers.identities;
      const trouble = await begin(id, me.id);
      if (trouble) answers.identities = { kind: "stop", text: trouble };
      redraw();
    };
    const isLinked = (/** @type {string} */ id) => linked.some((/** @type {any} */ each) => each.provider === id);
    return section(
      "identities",
      linked.length
        ? identityList(linked, (identity) => change("identities", "unlinkSignIn", { identity }, () => t("account.unlinked")))
        : h("p", { class: "soft" }, t("account.noIdentities")),
      providers.map((/** @type {any} */ { id, name }) => !isLinked(id) && h("div", null, button("second", t("account.link", { name }), link(id)))),
    );
  }

  function loginName() {
    return account.me.email ?? account.me.username;
  }

  function password() {
    const send = async (/** @type {any} */ input) => {
      const isDone = await change("password", "changePassword", { input }, (result) => t("account.passwordChanged", { count: result.endedSessions }));
      if (!isDone) document.getElementById("currentPassword")?.focus();
      return isDone;
    };
    return section("password", form(
      "stack",
      t("account.changePassword"),
      send,
      usernameField(loginName()),
      field("currentPassword", t("account.currentPassword"), { type: "password", autocomplete: "current-password", required: true }),
      field(
        "newPassword",
        t("account.newPassword"),
        { type: "password", autocomplete: "new-password", required: true, minlength: site.passwordRules.minLength },
        "",
        t("signin.passwordRules", site.passwordRules),
      ),
    ));
  }

  async function confirmEmail() {
    const sent = code;
    if (await change("email", "verifyEmail", { code }, (result) => t("account.emailIsVerified", { email: result.user.email })) && code === sent) code = "";
    redraw();
  }

  function email() {
    const { email: address, emailVerified, emailUndeliverableSince, hasPassword } = account.me;
    const isOpen = !emailVerified && !code && site.sendsMail;
    return section(
      "email",
      h("p", null, address, " ", emailVerified && h("span", { class: "tag yours" }, icon("tick"), t("account.verified"))),
      emailUndeliverableSince && notice("stop", "warning", t("account.undeliverable")),
      code && notice("wait", "person", t("account.confirmHelp"), button("", t("account.confirm"), confirmEmail)),
      isOpen && h("div", null, button("second", t("account.requestCode"), () => change("email", "requestEmailVerification", {}, codeSent))),
      site.sendsMail && hasPassword && form(
        "stack",
        t("account.changeEmail"),
        (input) => change("email", "changeEmail", { input }, codeSent),
        usernameField(loginName()),
        field("newEmail", t("account.newEmail"), { type: "email", autocomplete: "email", required: true }),
        field("emailPassword", t("account.currentPassword"), { name: "currentPassword", type: "password", autocomplete: "current-password", required: true }),
      ),
    );
  }

  /** Remember the code for after the sign-in: it is worth nothing without it. */
  function remember() {
    if (code) tab.set(BACK, `#/account/${code}`);
  }

  /** @param {any} team */
  function teamItem(team) {
    const names = team.members.map((/** @type {any} */ each) => each.user?.name).filter(Boolean);
    return h(
      "li",
      { class: "stack tight", "data-key": team.id },
      h("h3", null, team.name),
      h("p", { class: "soft" }, listOf(names)),
      team.invitations.map((/** @type {any} */ each) => h(
        "p",
        { class: "row", "data-key": each.email },
        h("span", { class: "soft" }, t("account.isInvited", { email: each.email })),
        button(
          "plain",
          [t("account.withdraw"), whose(each.email)],
          () => change("teams", "withdrawTeamInvitation", { teamId: team.id, email: each.email }, () => t("account.withdrawn")),
        ),
      )),
      form(
        "row ends",
        t("account.invite"),
        ({ email }) => change("teams", "inviteToTeam", { input: { teamId: team.id, email } }, () => t("account.invited", { email })),
        field(
          `invite-${team.id}`,
          t("account.inviteAddress"),
          { name: "email", required: true, autocomplete: "off", autocapitalize: "none", spellcheck: "false" },
        ),
      ),
      askOnce(
        `leave ${team.id}`,
        "plain",
        {
          label: t("account.leaveTeam", { name: team.name }),
          question: t("account.leaveTeamAsk", { name: team.name }),
          yes: t("account.leave"),
          no: t("account.stay"),
        },
        () => change("teams", "leaveTeam", { teamId: team.id }, () => t("account.left", { name: team.name })),
      ),
    );
  }

  function teams() {
    return section(
      "teams",
      shows.invited?.(load),
      account.myTeams.length ? h("ul", { class: "stack loose" }, account.myTeams.map(teamItem)) : h("p", { class: "soft" }, t("account.noTeams")),
      form(
        "row ends",
        t("account.createTeam"),
        ({ name }) => change("teams", "createTeam", { input: { name, idempotencyKey: newKey() } }, () => t("account.teamCreated", { name })),
        field("team", t("account.teamName"), { name: "name", required: true, autocomplete: "off" }),
      ),
    );
  }

  async function download() {
    delete answers.data;
    try {
      saveFile("personal-data.json", await readFile("/personal-data"));
    } catch {
      answers.data = { kind: "stop", text: t("account.dataFailed") };
    }
    redraw();
  }

  const signOutButton = () => h("div", null, button("final", t("account.signOut"), () => {
    signOut();
    go("#/");
  }));

  function render() {
    if (!me) return [
      h("h1", null, t("tab.account")),
      code && notice("wait", "person", t("account.confirmSignIn")),
      looks(),
      hasSession()
        ? [notice("wait", "warning", errorText("OFFLINE")), signOutButton()]
        : h("div", null, h("a", { class: "btn", href: "#/signin", onclick: remember }, t("tab.signin"))),
    ].flat();
    if (!account) return [h("h1", null, t("tab.account")), load.error ? failure(load.error, load) : bones(4), signOutButton()];
    const since = t("account.since", { day: dayOf(account.me.createdAt, deviceZone) });
    return [
      h(
        "div",
        { class: "stack tight" },
        h("h1", null, account.me.name),
        h("p", { class: "soft" }, [loginName(), ...(account.me.groups ?? []), since].filter(Boolean).join(" · ")),
      ),
      shows.account?.(section),
      looks(),
      teams(),
      sessions(),
      identities(),
      account.me.email && (code || site.sendsMail) && email(),
      account.me.email && site.sendsMail && mails(),
      phone(),
      account.me.hasPassword && password(),
      section("data", h("p", null, t("account.dataHelp")), h("div", null, button("second", t("account.download"), download))),
      signOutButton(),
    ];
  }

  return { title: () => t("tab.account"), render, leave: () => void stopSession() };
}

/** Return the browser and the system of a client, as it names itself. @param {string | null} client */
function deviceOf(client) {
  const browser = /(Edg|OPR|Firefox|Chrome|CriOS|FxiOS|Safari)/.exec(client ?? "")?.[1];
  const system = /(iPhone|iPad|Android|Windows|Mac OS X|CrOS|Linux)/.exec(client ?? "")?.[1];
  const names = /** @type {Record<string, string>} */ ({ Edg: "Edge", OPR: "Opera", CriOS: "Chrome", FxiOS: "Firefox", "Mac OS X": "Mac", CrOS: "Chromebook" });
  const known = [browser, system].filter(Boolean).map((each) => names[/** @type {string} */ (each)] ?? each);
  return commas(known) || client?.slice(0, 40) || t("account.unknownDevice");
}
