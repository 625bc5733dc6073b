// @ts-check
/** Wishes of a draw: ranking them with buttons, and later what became of each and why. */
import { say, signInFirst } from "../page.js";
import { codeOf, me, onSession, run } from "../client.js";
import { h, redraw } from "../kernel.js";
import { bones, button, failure, field, icon, notice, saveFile, searchField, section, whose } from "../parts.js";
import { isForMe, opening } from "../slotstate.js";
import { readAll } from "../store.js";
import { errorText, number, ordinal, problemTexts, schoolZone, shortMomentOf, t } from "../text.js";

const MOST = 50;
/** How soon after the last change the list is sent. */
const SEND_AFTER_MS = 600;
const READ_WISHES_AGAIN_MS = 5000;
/** The refusals of a drawn place whose own text needs values that only the refused request had. */
const SAID_AS = { LIMIT_REACHED: "wishes.LIMIT", GROUP_FULL: "refusal.SLOT_FULL", TOO_MANY_NO_SHOWS: "wishes.TOO_MANY_NO_SHOWS" };

/** Whether these are the same users. @param {string[]} some @param {string[]} others */
const areSame = (some, others) => [...some].sort().join() === [...others].sort().join();

/** What everybody may check of a draw whose wishes are closed. @param {any} draw */
export const evidence = ({ recordId: id, root, seed }) => [
  seed && h("p", { class: "text" }, t("wishes.seed", { seed: seed.text, source: seed.source })),
  h("p", { class: "text small soft" }, t("wishes.root", { root })),
  h("p", null, button("second", t("wishes.record"), async () => {
    const { drawRecord } = await run("drawRecord", { id });
    saveFile(`${id}-record.json`, new Blob([drawRecord], { type: "application/json" }));
  })),
];

/** @param {string} campaignId */
export function openWishes(campaignId) {
  /** @type {any} */
  let data = null;
  /** @type {any[] | null} */
  let slots = null;
  /** The ids of the wishes, the best first. @type {string[]} */
  let ranked = [];
  /** The team that wishes together; empty for this person alone. */
  let teamId = "";
  let error = "";
  /** What the server says to the last list: "saving", "saved", or why it did not work. */
  let state = "";
  let problem = "";
  let text = "";
  let version = 0;
  /** Whose wishes these are: this view ends after somebody else has signed in. @type {string | undefined} */
  let owner;
  /** @type {any} */
  let timer;
  let sending = Promise.resolve();

  async function load() {
    if (!me) return;
    try {
      const [found, all] = await Promise.all([run("wishes", { campaign: campaignId }), slots ?? readAll("slotsOfCampaign", { campaign: campaignId }, "slots")]);
      data = found;
      [data.draw] = data.draws;
      slots = all;
      error = data.campaign && data.draw ? "" : "CAMPAIGN_NOT_FOUND";
      if (!version) ranked = (data.myWishes?.ranked ?? []).map((/** @type {any} */ each) => each.slotId);
      if (!version && data.myWishes) teamId = teams().find((each) => areSame(membersOf(each), data.myWishes.userIds))?.id ?? "";
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  load();
  const stopSession = onSession(load);
  const reading = setInterval(() => !version && load(), READ_WISHES_AGAIN_MS);

  /** The teams of this person that have other members. @returns {any[]} */
  const teams = () => data.myTeams.filter((/** @type {any} */ each) => each.members.length > 1);
  /** @param {any} team @returns {string[]} */
  const membersOf = (team) => team.members.map((/** @type {any} */ each) => each.user?.id);

  /** Use a new list, and send it soon. @param {string[]} next @param {string} said */
  function change(next, said) {
    ranked = next;
    version += 1;
    owner = me?.id;
    state = "saving";
    say(said);
    clearTimeout(timer);
    timer = setTimeout(send, SEND_AFTER_MS);
    redraw();
  }

  /** Send one list at a time, so that a slow one does not replace the next. */
  const send = () => (sending = sending.then(sendLatest));

  async function sendLatest() {
    if (owner !== me?.id) return;
    const sent = version;
    problem = "";
    try {
      const team = teams().find((each) => each.id === teamId);
      const { setWishes: result } = await run("setWishes", { campaign: campaignId, slots: ranked, team: team?.id ?? null }, owner);
      if (!result.code) data.myWishes = result.wishes;
      if (sent !== version) return; // a newer list follows
      if (result.code) problem = result.fields ? problemTexts(result.fields) : t(`refusal.${result.code}`);
    } catch (caught) {
      if (sent !== version) return;
      problem = errorText(codeOf(caught));
    }
    state = problem ? "" : "saved";
    version = problem ? version : 0;
    say(problem || t("wishes.saved"));
    redraw();
  }

  /** @param {number} index @param {number} by */
  function move(index, by) {
    const next = [...ranked];
    const [id] = next.splice(index, 1);
    next.splice(index + by, 0, id);
    change(next, t("wishes.movedTo", { title: titleOf(id), rank: ordinal(index + by + 1) }));
    // The button that was pressed moves with its wish; at an end, the other one takes the focus.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const row = document.querySelector(`[data-key="wish ${id}"]`);
      const same = /** @type {HTMLButtonElement | null} */ (row?.querySelector(by < 0 ? ".up" : ".down"));
      const other = /** @type {HTMLButtonElement | null} */ (row?.querySelector(by < 0 ? ".down" : ".up"));
      (same && !same.disabled ? same : other)?.focus();
    }));
  }

  /** @param {string} id */
  const slotOf = (id) => slots?.find((each) => each.id === id);
  /** @param {string} id */
  const titleOf = (id) => slotOf(id)?.title ?? t("wishes.gone");
  /** @param {any} slot */
  const when = (slot) => slot && h(
    "span",
    { class: "soft" },
    shortMomentOf(slot.startTime, slot.timeZone),
  );

  /** @param {string} id @param {number} index @param {any[]} more */
  const line = (id, index, ...more) => h("p", { class: "grow" }, h("strong", null, `${index + 1}. ${titleOf(id)}`), h("br"), when(slotOf(id)), more);

  /** @param {string} id */
  function demand(id) {
    const found = data.wishStatistics?.find((/** @type {any} */ each) => each.slotId === id);
    return data.wishStatistics && h(
      "span",
      { class: "soft" },
      " · ",
      t("wishes.demand", { count: found?.wishes ?? 0, places: number(slotOf(id)?.capacity ?? 0) }),
    );
  }

  /** @param {string} id @param {number} index */
  function wish(id, index) {
    const name = whose(titleOf(id));
    const act = (
      /** @type {string} */ kind,
      /** @type {string} */ key,
      /** @type {() => void} */ does,
      /** @type {boolean} */ isOff,
    ) => button(`second ${kind}`, [t(key), name.cloneNode(true)], does, { disabled: isOff });
    return h(
      "li",
      { "data-key": `wish ${id}` },
      line(id, index, demand(id)),
      h(
        "div",
        { class: "row" },
        act("up", "wishes.up", () => move(index, -1), index === 0),
        act("down", "wishes.down", () => move(index, 1), index === ranked.length - 1),
        act("", "wishes.remove", () => change(ranked.filter((each) => each !== id), t("wishes.removed", { title: titleOf(id) })), false),
      ),
    );
  }

  /** @param {any} slot */
  function candidate(slot) {
    return h(
      "li",
      { "data-key": `slot ${slot.id}` },
      h("p", { class: "grow" }, h("a", { href: `#/slot/${slot.id}` }, slot.title), h("br"), when(slot), demand(slot.id)),
      button(
        "second",
        [t("wishes.add"), whose(slot.title)],
        () => change([...ranked, slot.id], t("wishes.added", { title: slot.title, rank: ordinal(ranked.length + 1) })),
        { disabled: ranked.length >= MOST },
      ),
    );
  }

  /** Who wishes: this person alone, or one of the teams. */
  function choice() {
    if (!teams().length) return null;
    const onchange = (/** @type {any} */ event) => {
      teamId = event.target.value;
      change(ranked, "");
    };
    const options = [["", t("wishes.alone")], ...teams().map((each) => [each.id, each.name])];
    const children = options.map(([value, name]) => h("option", { value, selected: value === teamId }, name));
    return field("team", t("wishes.for"), { tag: "select", onchange, children }, "", teamId && t("wishes.ofTeam"));
  }

  function collecting() {
    const others = (slots ?? []).filter((slot) => !ranked.includes(slot.id) && isForMe(null, slot) && slot.title.toLocaleLowerCase().includes(text));
    return [
      h("p", null, t("wishes.help", { time: opening(Date.parse(data.draw.wishesUntil), schoolZone) })),
      choice(),
      section("ranked", [t("wishes.yours"), " ", h("span", { class: "soft" }, number(ranked.length))], [
        ranked.length ? h("ol", { class: "frame list" }, ranked.map(wish)) : notice("", "star", t("wishes.none")),
        h(
          "p",
          { class: problem ? "error" : "soft", "data-key": "state" },
          problem ? [icon("warning"), h("span", null, problem), button("second", t("again"), send)] : state ? t(`wishes.${state}`) : "",
        ),
      ]),
      section("others", t("wishes.others"), [searchField((typed) => (text = typed)), h("ul", { class: "frame list" }, others.map(candidate))]),
    ];
  }

  function ranking() {
    if (!ranked.length) return notice("", "star", t("wishes.none"));
    return h("ol", { class: "frame list" }, ranked.map((id, index) => h("li", null, line(id, index))));
  }

  /** Say what became of a wish, and why. @param {any} outcome @param {any} entry */
  function why(outcome, { notEligible, memberCount }) {
    if (outcome.notBooked)
      return t("wishes.NOT_BOOKED", { reason: t(/** @type {any} */ (SAID_AS)[outcome.notBooked] ?? `refusal.${outcome.notBooked}`, {}, outcome.notBooked) });
    if (outcome.result === "GRANTED") return t("wishes.GRANTED", { round: number(outcome.round) });
    if (outcome.result === "FULL" && memberCount > 1) return t("wishes.fullForTeam");
    if (outcome.result === "FULL") return outcome.lastNumberServed ? t("wishes.FULL", { number: number(outcome.lastNumberServed) }) : t("wishes.fullBefore");
    if (outcome.result === "TIME_CONFLICT" && outcome.conflict) return t("wishes.conflictWith", { title: outcome.conflict.title });
    if (outcome.result === "LIMIT" && outcome.conflict) return t("wishes.oneOf", { title: outcome.conflict.title });
    if (outcome.result === "NOT_ELIGIBLE") return t(`wishes.${notEligible}`, {}, t(notEligible ? "wishes.NOT_ELIGIBLE" : "refusal.NOT_ELIGIBLE"));
    if (outcome.result === "GROUP_FULL") return t("wishes.GROUP_FULL", { group: outcome.group ?? "" });
    return t(`wishes.${outcome.result}`);
  }

  /** @param {any} draw */
  function results({ myResult: own, isWritten }) {
    if (!own) return notice("", "star", t(data.myWishes ? "wishes.leftOut" : "wishes.notTaken"));
    return [
      h("p", null, t("wishes.number", { number: number(own.lotteryNumber ?? 0) })),
      own.memberCount > 1 && notice("", "people", t("wishes.ofTeam")),
      !isWritten && notice("wait", "clock", t("wishes.booking")),
      h("ol", { class: "frame list" }, own.wishes.map((/** @type {any} */ each, /** @type {number} */ index) => {
        const isOwn = each.result === "GRANTED" && !each.notBooked;
        return h("li", null, icon(isOwn ? "tick" : "cross", isOwn ? "good" : ""), line(each.slotId, index, h("br"), why(each, own)));
      })),
    ];
  }

  /** @param {any} draw */
  const proof = (draw) => draw.root && section(draw.recordId, t("wishes.proof"), [
    h("p", null, t("wishes.proofHelp")),
    draw.myResult && h("p", { class: "text small soft" }, t("wishes.leaf", { leaf: draw.myResult.leaf })),
    evidence(draw),
  ]);

  function body() {
    if (error) return [failure(error, load)];
    if (!data || !slots) return [bones(6)];
    const { draw, draws } = data;
    const former = draws.find((/** @type {any} */ each) => each !== draw && each.myResult?.lotteryNumber);
    return [
      draw.acceptsWishes ? collecting()
        : draw.state === "PUBLISHED" ? [results(draw), h("p", null, h("a", { class: "btn second", href: `#/campaign/${campaignId}` }, t("wishes.leftovers")))]
        : [notice("wait", "clock", t("wishes.closed")), ranking()],
      proof(draw),
      former && [section("former", t("wishes.former"), results(former)), proof(former)],
    ].flat(2);
  }

  return {
    title: () => t("wishes.title"),
    render: () => [
      h(
        "div",
        { class: "top" },
        h("h1", null, t("wishes.title")),
        data?.campaign && h("p", { class: "soft" }, h("a", { href: `#/campaign/${campaignId}` }, data.campaign.name)),
      ),
      ...(me ? body() : [notice("", "person", t("wishes.signIn"), button("", t("tab.signin"), signInFirst))]),
    ],
    leave() {
      clearInterval(reading);
      stopSession();
      if (state === "saving") send();
      clearTimeout(timer);
    },
  };
}
