// @ts-check
/** Wishes of a draw: ranking them with buttons, and later what became of each and why. */
import { say, signInFirst } from "../page.js";
import { codeOf, me, onSession, readFile, run } from "../client.js";
import { drawText, follow, isCollecting, leftoversText, untilText } from "../draws.js";
import { h, redraw } from "../kernel.js";
import { bones, button, failure, field, icon, notice, saveFile, searchField, section, whose } from "../parts.js";
import { shows } from "../people.js";
import { freePlaces, isForMe, opening, stayUnder } from "../slotstate.js";
import { readAll } from "../store.js";
import { commas, errorText, number, ordinal, problemTexts, schoolZone, sentences, shortMomentOf, shortWhenOf, t } from "../text.js";
import { now } from "../clock.js";

const MOST = 50;
/** With so many wishes almost nobody has nothing: the simulation of `docs/decisions/0064-the-fair-draw.md`. */
const ENOUGH = 10;
/** How soon after the last change the list is sent. */
const SEND_AFTER_MS = 600;
/** The refusals of a drawn place whose own text needs values that only the refused request had. @type {Record<string, string>} */
const SAID_AS = { LIMIT_REACHED: "wishes.LIMIT", GROUP_FULL: "refusal.SLOT_FULL", TOO_MANY_NO_SHOWS: "wishes.TOO_MANY_NO_SHOWS" };

/** Whether these are the same users. @param {string[]} some @param {string[]} others */
const areSame = (some, others) => [...some].sort().join() === [...others].sort().join();

/** Say from which randomness the places are drawn. @param {string | null} source @param {any} at when it is public */
const sourceText = (source, at) => source ? t("wishes.source", { source, time: shortWhenOf(at, schoolZone) }) : t("wishes.serverSource");

/** Say what happened to a draw, and when. @param {any} act */
function actText({ at, state, wishesUntil, seedSource, seedAt, reason, by }) {
  const what = wishesUntil ? [untilText(wishesUntil), sourceText(seedSource, seedAt)] : [t(`draw.state.${state}`)];
  return [shortWhenOf(at, schoolZone), ...what, reason, by?.name].filter(Boolean).join(" · ");
}

/** Return a part of a page that is folded at first. @param {string} id @param {string} title @param {any[]} content */
export function folded(id, title, content) {
  return h("details", { class: "more", "data-key": id }, h("summary", null, title), h("div", { class: "stack" }, content));
}

/** What everybody may check of a draw, folded. @param {any} draw @param {Record<string, any>} more values by their names */
export const evidence = ({ recordId: id, acts, announcement: { commitment }, root, seed, recordHash }, more) => folded(`evidence ${id}`, t("wishes.proof"), [
  h("p", null, t("wishes.proofHelp")),
  h("ul", { class: "items" }, acts.map((/** @type {any} */ act) => h("li", null, actText(act)))),
  h("dl", { class: "stack tight" }, Object.entries({ commitment, root, seed: seed?.text, recordHash, ...more }).map(
    ([name, value]) => value && h("div", null, h("dt", { class: "soft small" }, t(`wishes.fact.${name}`)), h("dd", null, value)),
  )),
  root && h("p", null, button("second", t("wishes.record"), async () => {
    saveFile(`${id}-record.json`, await readFile(`/draws/${id}/record`));
  })),
]);

/** The saving of lists, which the next view waits for. */
let sending = Promise.resolve();

/** @param {string} part the id of a campaign, and for whom of a family the wishes are */
export function openWishes(part) {
  const [campaignId, ...userIds] = part.split("/");
  const { userId, users, fits, links, note, settle, text: told = t } = shows.wishes?.(campaignId, userIds) ?? {};
  /** @type {any} */
  let data = null;
  /** @type {any[] | null} */
  let slots = null;
  /** What this person has, once the places are booked. @type {any[] | null} */
  let mine = null;
  /** The ids of the wishes, the best first. @type {string[]} */
  let ranked = [];
  /** The list of the server that these replace. @type {any} */
  let replaced = null;
  /** The team that wishes together; empty for this person alone. */
  let teamId = "";
  let error = "";
  /** What the server says to the last list: "saving", "saved", or why it did not work. */
  let state = "";
  let problem = "";
  let text = "";
  /** Which list this is, and which one the server has. */
  let version = 0;
  let savedVersion = 0;
  /** Whose wishes these are: this view ends after somebody else has signed in. @type {string | undefined} */
  let owner;
  /** @type {any} */
  let timer;

  async function load() {
    if (!me) return undefined;
    await null; // the last view is left after this one is opened
    await sending;
    const before = savedVersion;
    try {
      data = await run("wishes", { campaign: campaignId, userId });
      settle?.(data);
      [data.draw] = data.draws;
      // Publishing and booking change what is free.
      const stage = data.draw?.state + data.draw?.isWritten;
      if (stage !== slotsOf) {
        slots = await readAll("slotsOfCampaign", { campaign: campaignId }, "slots");
        if (data.draw?.isWritten) mine = (await readAll("myWeek", { userId }, "myBookings"))?.map((each) => each.slot) ?? null;
      }
      slotsOf = stage;
      error = data.campaign && data.draw ? "" : "CAMPAIGN_NOT_FOUND";
      // A list that was changed during the read, or waits to be saved, is newer.
      if (before === version) {
        replaced = data.myWishes;
        ranked = (replaced?.ranked ?? []).map((/** @type {any} */ each) => each.slotId);
        if (replaced) teamId = teams().find((each) => areSame(membersOf(each), replaced.userIds))?.id ?? "";
      }
    } catch (caught) {
      const code = codeOf(caught);
      if (!slots) error = code; // else the list stays, and is read again
    }
    redraw();
    return data?.draw ?? null;
  }
  /** The stage of the draw at which the courses were read. */
  let slotsOf = "";
  const reading = follow(load);
  const stopSession = onSession(reading.again);
  const ticking = setInterval(redraw, 1000);

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
      const team = teams().find((each) => each.id === teamId)?.id ?? null;
      const changedAt = replaced?.changedAt ?? null;
      const { setWishes: result } = await run("setWishes", { campaign: campaignId, slots: ranked, team, users, changedAt }, owner);
      if (!result.code) replaced = data.myWishes = result.wishes;
      if (sent !== version) return; // a newer list follows
      if (result.code) {
        problem = result.fields ? problemTexts(result.fields) : t(`refusal.${result.code}`);
        if (result.fields?.[0].code === "WISHES_CHANGED") {
          problem = sentences([problem, ranked[0] && t("wishes.unsaved", { titles: commas(ranked.map(titleOf)) })]);
          savedVersion = sent; // the list that there is now takes its place
        }
        reading.again();
      }
    } catch (caught) {
      if (sent !== version) return;
      problem = errorText(codeOf(caught));
    }
    state = problem ? "" : "saved";
    if (!problem) savedVersion = sent;
    say(problem || told("wishes.saved"));
    redraw();
  }

  /** @param {() => void} act */
  const onceDrawn = (act) => requestAnimationFrame(() => requestAnimationFrame(act));

  /** @param {number} index @param {number} by */
  function move(index, by) {
    const next = [...ranked];
    const [id] = next.splice(index, 1);
    next.splice(index + by, 0, id);
    change(next, told("wishes.rank", { title: titleOf(id), rank: ordinal(index + by + 1) }));
    // The button that was pressed moves with its wish; at an end, the other one takes the focus.
    onceDrawn(() => {
      const row = document.querySelector(`[data-key="wish ${id}"]`);
      const same = /** @type {HTMLButtonElement | null} */ (row?.querySelector(by < 0 ? ".up" : ".down"));
      const other = /** @type {HTMLButtonElement | null} */ (row?.querySelector(by < 0 ? ".down" : ".up"));
      (same && !same.disabled ? same : other)?.focus();
    });
  }

  /** @param {string} id */
  const slotOf = (id) => slots?.find((each) => each.id === id) ?? outcomes().find((each) => each.slotId === id)?.slot;
  /** What became of the wishes in all draws; courses that are over are only there. @returns {any[]} */
  const outcomes = () => data.draws.flatMap((/** @type {any} */ each) => each.myResult?.wishes ?? []);
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
      { "data-key": `wish ${id}`, tabindex: -1, "aria-label": `${index + 1}. ${titleOf(id)}` },
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
        (/** @type {any} */ event) => {
          change([...ranked, slot.id], told("wishes.rank", { title: slot.title, rank: ordinal(ranked.length + 1) }));
          const isTap = event.detail > 0;
          const row = event.currentTarget.closest("li");
          if (isTap) stayUnder(row.previousElementSibling ?? row.nextElementSibling ?? row);
          onceDrawn(() => /** @type {any} */ (document.querySelector(`[data-key="wish ${slot.id}"]`))?.focus({ preventScroll: isTap }));
        },
        { disabled: ranked.length >= MOST },
      ),
    );
  }

  /** Who wishes: this person alone, or one of the teams. */
  function choice() {
    if (!teams().length || users) return null;
    const onchange = (/** @type {any} */ event) => {
      teamId = event.target.value;
      change(ranked, "");
    };
    const options = [["", t("wishes.alone")], ...teams().map((each) => [each.id, each.name])];
    const children = options.map(([value, name]) => h("option", { value, selected: value === teamId }, name));
    return field("team", t("wishes.for"), { tag: "select", onchange, children }, "", teamId && told("wishes.ofTeam"));
  }

  /** Say in which order people get places. @param {any} draw @param {string} next says what round 2 is */
  const orderText = ({ method }, next) => method === "ROUNDS"
    ? sentences([t("wishes.round"), data.campaign.maxBookings !== 1 && t(next, { count: data.campaign.maxBookings })])
    : t("wishes.allAtOnce");

  /** Say how a draw works, and who may check it. */
  function rules() {
    const { draw, draw: { recordFor, announcement: { source, at } }, campaign: { maxBookings } } = data;
    return h("div", { class: "stack tight" }, [
      t("wishes.how"),
      orderText(draw, maxBookings ? "wishes.backwards" : "wishes.onwards"),
      t("wishes.fair"),
      sentences([sourceText(source, at), t(`wishes.recordFor.${recordFor}`)]),
    ].filter(Boolean).map((text) => h("p", null, text)));
  }

  function collecting() {
    const mine = (slots ?? []).filter(fits ?? ((slot) => isForMe(null, slot)));
    const others = mine.filter((slot) => !ranked.includes(slot.id) && slot.title.toLocaleLowerCase().includes(text));
    const count = Math.min(ENOUGH, mine.length);
    return [
      notice("", "clock", h("strong", null, drawText(data.draw))),
      rules(),
      choice(),
      note?.(data.myWishes, ranked, change) ?? (!(teamId || state) && data.myWishes?.userIds[1] && notice("wait", "people", t("wishes.split"))),
      section("ranked", [told("wishes.yours"), " ", h("span", { class: "soft" }, number(ranked.length))], [
        ranked.length < count && h("p", null, t(count < ENOUGH ? "wishes.rankAll" : "wishes.rankEnough", { count })),
        ranked.length > 0 && h("ol", { class: "frame list" }, ranked.map(wish)),
        h(
          "p",
          { class: problem ? "error" : "soft", "data-key": "state" },
          problem
            ? [icon("warning"), h("span", null, problem), version > savedVersion && button("second", t("again"), send)]
            : state && told(`wishes.${state}`),
        ),
      ]),
      section("others", t("wishes.others"), [searchField((typed) => (text = typed)), h("ul", { class: "frame list" }, others.map(candidate))]),
    ];
  }

  /** Show how the list counts in the draw: what no lot can give, and why. @param {any} draw */
  function counting({ myResult: own, root }) {
    const ids = (data.myWishes?.ranked ?? []).map((/** @type {any} */ each) => each.slotId);
    const blocked = new Map((own?.blocked ?? []).map((/** @type {any} */ each) => [each.slotId, each]));
    const row = (/** @type {string} */ id, /** @type {number} */ index) => {
      const found = blocked.get(id);
      return h("li", null, line(id, index, root && said(!found, found ? why(found, own) : t("wishes.itCounts"))));
    };
    return [
      notice("wait", "clock", [drawText(data.draw), problem && ` ${problem}`]),
      ids.length === 0 ? notice("", "star", told("wishes.none"))
        : root && !own ? notice("", "star", told("wishes.leftOut"))
        : section("counts", told("wishes.counts"), [
          own?.memberCount > 1 && notice("", "people", told("wishes.ofTeam")),
          h("ol", { class: "frame list" }, ids.map(row)),
        ]),
    ];
  }

  /** @param {boolean} isGood @param {string} text */
  const said = (isGood, text) => [h("br"), icon(isGood ? "tick" : "cross", isGood ? "good" : ""), " ", text];

  /** Say what became of a wish, and why. @param {any} outcome @param {any} entry */
  function why({ result, round, lastNumberServed, group, notBooked, conflict }, { notEligible, memberCount }) {
    if (notBooked) return told("wishes.NOT_BOOKED", { reason: told(SAID_AS[notBooked] ?? `refusal.${notBooked}`, {}, notBooked) });
    if (result === "GRANTED") return told("wishes.GRANTED", { round: number(round) });
    if (result === "FULL" && memberCount > 1) return told("wishes.fullForTeam");
    if (result === "FULL") return lastNumberServed ? t("wishes.FULL", { number: number(lastNumberServed) }) : t("wishes.fullBefore");
    if (conflict && result === "TIME_CONFLICT") return told("wishes.conflictWith", conflict);
    if (conflict && result === "LIMIT") return told("wishes.oneOf", conflict);
    if (result === "NOT_ELIGIBLE") return t(`wishes.${notEligible}`, {}, t(notEligible ? "wishes.NOT_ELIGIBLE" : "refusal.NOT_ELIGIBLE"));
    if (result === "GROUP_FULL") return t("wishes.GROUP_FULL", { group: group ?? "" });
    return told(`wishes.${result}`);
  }

  /** Ask for one of two places: what was booked since the wishes were closed may overlap with a drawn one. @param {any} own */
  function giveOne(own) {
    const meets = (/** @type {any} */ one) => own.meetings.some((/** @type {any} */ each) => one.startTime < each.endTime && each.startTime < one.endTime);
    const other = mine?.find((each) => each.id !== own.id && each.status !== "CANCELLED" && each.meetings.some(meets));
    /** @param {any} slot */
    const link = ({ id, title }) => h("a", { class: "btn second", href: `#/slot/${id}` }, t("week.giveBack") + t("whose", { name: title }));
    return other && notice("wait", "overlap", told("wishes.giveOne", other), [own, other].map(link));
  }

  /** @param {any} draw */
  function results(draw) {
    const { myResult: own, isWritten, entryCount } = draw;
    if (!own) return notice("", "star", told(data.myWishes ? "wishes.leftOut" : "wishes.notTaken"));
    const isDrawn = (/** @type {any} */ each) => each.result === "GRANTED" && !each.notBooked;
    const rounds = new Set(own.wishes.map((/** @type {any} */ each) => each.round).filter(Boolean));
    return [
      h("p", null, t("wishes.number", { number: number(own.lotteryNumber ?? 0), count: number(entryCount ?? 0) })),
      own.wishes.some((/** @type {any} */ each) => each.lastNumberServed) && h("p", { class: "soft" }, orderText(draw, "wishes.onwards")),
      own.memberCount > 1 && notice("", "people", told("wishes.ofTeam")),
      !isWritten && notice("wait", "clock", t("wishes.booking")),
      h("ol", { class: "frame list" }, own.wishes.map((/** @type {any} */ each, /** @type {number} */ index) => {
        const booked = mine?.find(({ id }) => id === each.slotId);
        const isOwn = isDrawn(each) && (booked ?? !mine);
        const text = isDrawn(each) && !isOwn ? told("wishes.noLonger") : isOwn && rounds.size < 2 ? told("wishes.granted") : why(each, own);
        return h("li", null, line(each.slotId, index, said(isOwn, text)), isOwn && booked && giveOne(booked));
      })),
    ];
  }

  /** Say what is left after a draw, and from when on it can be booked. */
  function leftovers() {
    const opensAt = Date.parse(data.campaign.opensAt);
    const text = leftoversText(slots ?? [], opensAt > now() ? opening(opensAt, schoolZone) : "");
    return notice("", "list", text, slots?.some(freePlaces) && h("a", { class: "btn second", href: `#/campaign/${campaignId}` }, t("wishes.leftovers")));
  }

  /** @param {any} draw */
  const proof = (draw) => evidence(draw, { leaf: draw.myResult?.leaf, salt: draw.myResult?.salt, user: draw.myResult && (userId ?? me.id) });

  /** Show an earlier draw, which stays. @param {any} draw */
  const formerDraw = (draw) => section(draw.recordId, t("wishes.former", { time: shortWhenOf(draw.acts[0].at, schoolZone) }), [
    draw.state !== "PUBLISHED" && h("p", null, t(draw.seed ? "wishes.replacedAfterSeed" : `draw.state.${draw.state}`)),
    draw.myResult?.lotteryNumber && results(draw),
    proof(draw),
  ]);

  function body() {
    if (error) return [failure(error, reading.again)];
    if (!data || !slots) return [bones(6)];
    const { draw, draws } = data;
    return [
      isCollecting(draw) ? collecting()
        : draw.state === "PUBLISHED" ? section("result", told("wishes.result"), [results(draw), draw.isWritten && leftovers()])
        : draw.state === "CANCELLED" ? notice("", "cross", t("wishes.calledOff", { reason: draw.acts.at(-1).reason }))
        : counting(draw),
      proof(draw),
      draws.slice(1).map(formerDraw),
    ].flat(2);
  }

  return {
    title: () => t("wishes.title"),
    render: () => [
      h(
        "div",
        { class: "stack tight" },
        data?.campaign && h("p", null, h("a", { href: `#/campaign/${campaignId}` }, data.campaign.name)),
        h("h1", null, t("wishes.title")),
      ),
      links?.(),
      ...(me ? body() : [notice("", "person", t("wishes.signIn"), button("", t("tab.signin"), signInFirst))]),
    ],
    leave() {
      reading.stop();
      stopSession();
      clearInterval(ticking);
      if (state === "saving") send();
      clearTimeout(timer);
    },
  };
}
