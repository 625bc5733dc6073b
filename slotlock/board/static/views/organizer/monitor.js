// @ts-check
/** The rush of a campaign as it happens: numbers, bookings over time, what is full, who has nothing. */
import { now } from "../../clock.js";
import { codeOf, run } from "../../client.js";
import { h, list, redraw, svg } from "../../kernel.js";
import { bones, button, control, failure, hidden, notice, section, whose } from "../../parts.js";
import { opening, opensText } from "../../slotstate.js";
import { readAll } from "../../store.js";
import { commas, compareNames, countdown, durationOf, number, schoolZone, shortDayOf, shortOf, t, timeFormat, timeOf, unitFormat } from "../../text.js";
import { editTexts, withoutHalves } from "./course/history.js";
import { announcer } from "./forms/announce.js";
import { saveCsv } from "./files.js";
import { DAY_MS } from "./forms/localtime.js";
import { byListName, choice, level, listName, userLink, zoneNote } from "./parts.js";

const READ_MONITOR_AGAIN_MS = 5000;
/** The log costs more than the numbers. */
const LOG_EVERY = 3;
const LOG_PAGE = 100;
const MINUTE_MS = 60_000;
/** The interval of the chart and the labels of its times, by how long the campaign has been open. */
const INTERVALS = [
  { every: "MINUTE", ms: MINUTE_MS, untilMs: 90 * MINUTE_MS, label: timeOf },
  { every: "HOUR", ms: 60 * MINUTE_MS, untilMs: 72 * 60 * MINUTE_MS, label: shortOf },
  { every: "DAY", ms: 1440 * MINUTE_MS, untilMs: Infinity, label: shortDayOf },
];
const MIN_BARS = 15;
const SHEET = { kind: "sheet stack" };
/** What is worth a line on a screen that others watch: each booking is not. */
const ACTIONS = [
  "PROMOTED",
  "OFFERED",
  "MOVED",
  "CANCELLED",
  "EXPIRED",
  "SLOT_CREATED",
  "SLOT_EDITED",
  "SLOT_PUBLISHED",
  "SLOT_CANCELLED",
  "SLOT_DELETED",
  "CAMPAIGN_EDITED",
  "CAMPAIGN_PUBLISHED",
  "CAMPAIGN_UNPUBLISHED",
  "ANNOUNCEMENT_SENT",
  "DRAW_CONFIGURED",
  "DRAW_CLOSED",
  "DRAW_RUN",
  "DRAW_PUBLISHED",
  "DRAW_SUPERSEDED",
  "DRAW_CANCELLED",
];
/** What is worth a line only if somebody else did it for the person. */
const FOR_OTHERS = ["BOOKED", "HELD", "CONFIRMED", "WAITLIST_JOINED", "WAITLIST_LEFT"];
/** What ends with its course, and is no line of its own. */
const ENDED = ["CANCELLED", "WAITLIST_LEFT"];
const SHOWN_ENTRIES = 12;
/** The campaign of which somebody asked who has nothing, so that they are there again after one of them got a place. */
let askedOf = "";

/** @param {string} campaignId */
export function openMonitor(campaignId) {
  /** @type {any} */
  let campaign = null;
  /** @type {any} */
  let statistics = null;
  /** @type {any[]} */
  let entries = [];
  /** Who has nothing, once somebody asked. @type {any[] | null} */
  let unplaced = null;
  let unplacedState = "";
  /** Of which group names are shown; "" for all. */
  let unplacedGroup = "";
  let error = "";
  let reads = 0;
  let isLeft = false;
  /** @type {any} */
  let timer;

  async function load() {
    clearTimeout(timer);
    try {
      if (reads % LOG_EVERY === 0) {
        const filters = { filter: { campaignId, actions: ACTIONS }, forOthers: { campaignId, actions: FOR_OTHERS, forOthers: true } };
        const [found, log] = await Promise.all([run("campaign", { id: campaignId }), run("monitorLog", filters)]);
        campaign = found.campaign;
        entries = withoutDrawn([...log.auditLog.nodes, ...log.forOthers.nodes].sort((a, b) => b.at.localeCompare(a.at)));
      }
      if (campaign) statistics = await readStatistics();
      error = campaign && statistics ? "" : "CAMPAIGN_NOT_FOUND";
      reads += 1;
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
    if (!isLeft) timer = setTimeout(load, READ_MONITOR_AGAIN_MS);
  }
  load();
  if (askedOf === campaignId) showUnplaced();
  const letter = announcer({ campaignId, unplaced: true });
  const clock = setInterval(redraw, 1000);
  document.addEventListener("fullscreenchange", redraw);

  function interval() {
    const openMs = Math.min(now(), Date.parse(campaign.closesAt)) - Date.parse(campaign.opensAt);
    return INTERVALS.find((each) => openMs <= each.untilMs) ?? INTERVALS[2];
  }

  /** Read the statistics, with all slots. @param {string | null} [after] @returns {Promise<any>} */
  async function readStatistics(after = null) {
    const until = Date.parse(campaign.closesAt) < now() ? campaign.closesAt : null;
    const { campaignStatistics: found } = await run("monitorStatistics", { campaign: campaignId, every: interval().every, until, first: LOG_PAGE, after });
    if (found?.slots.pageInfo.hasNextPage) found.slots.nodes.push(...((await readStatistics(found.slots.pageInfo.endCursor))?.slots.nodes ?? []));
    return found;
  }

  async function showUnplaced() {
    askedOf = campaignId;
    unplacedState = "loading";
    redraw();
    try {
      unplaced = (await readAll("unplaced", { campaign: campaignId }, "unplaced"))?.sort(byGroups) ?? null;
      unplacedState = "";
    } catch (caught) {
      unplacedState = codeOf(caught);
    }
    redraw();
  }

  function hideUnplaced() {
    unplaced = null;
    askedOf = "";
  }

  function saveUnplaced() {
    const rows = (unplaced ?? []).map(({ user, waiting }) => [
      user.name,
      user.email ?? user.username ?? "",
      (user.groups ?? []).join(";"),
      waiting.map((/** @type {any} */ each) => each.slot.title).join(";"),
    ]);
    saveCsv(`${campaign.name.replace(/[^\p{L}\p{N}]+/gu, "-")}-${t("monitor.unplacedFile")}.csv`, [
      ["name", "login", "groups", "waiting"].map((each) => t(`csv.${each}`)),
      ...rows,
    ]);
  }

  function render() {
    if (!campaign || !statistics) return [error ? failure(error, load) : bones(5)];
    return [
      h(
        "div",
        { class: "row span" },
        h(
          "div",
          { class: "stack tight" },
          h("p", null, h("a", { href: `#/plan/${campaignId}` }, campaign.name)),
          h("h1", null, t("monitor.title", campaign)),
          h("p", { class: "soft" }, summary()),
          zoneNote(schoolZone),
        ),
        h("div", { class: "row push" }, freshness(), fullScreen()),
      ),
      numbers(),
      h("div", { class: "stack" }, chartPart(), slotsPart()),
      h("div", { class: "stack" }, unplacedPart(), logPart()),
    ];
  }

  function summary() {
    const opensAt = Date.parse(campaign.opensAt);
    const closesAt = Date.parse(campaign.closesAt);
    if (opensAt > now()) return `${opensText(opensAt, schoolZone)} · ${t("state.in", { time: countdown(opensAt - now()) })}`;
    return closesAt > now() ? t("open.until", { time: opening(closesAt, schoolZone) }) : t("open.over");
  }

  function freshness() {
    return h("p", { class: error ? "live stale" : "live" }, t(error ? "monitor.old" : "monitor.live", { time: secondOf(statistics.at) }));
  }

  function fullScreen() {
    if (!document.fullscreenEnabled) return null;
    const isFull = Boolean(document.fullscreenElement);
    return button("second", t(isFull ? "monitor.endFull" : "monitor.full"), () => {
      if (isFull) return document.exitFullscreen();
      hideUnplaced(); // who has nothing is not for the wall
      document.documentElement.requestFullscreen();
    });
  }

  function numbers() {
    const { taken, places: all, userCount, withoutBooking, peak, waiting } = statistics;
    const shown = [
      ["monitor.taken", taken, t("monitor.of", { count: number(all) })],
      ["monitor.peak", peak?.booked ?? 0, peak ? t("monitor.peakAt", { time: opening(Date.parse(peak.at), schoolZone) }) : ""],
      ["monitor.people", userCount, t("monitor.of", { count: number(userCount + withoutBooking) })],
      ["monitor.waiting", waiting, ""],
    ];
    return h(
      "dl",
      { class: "numbers span" },
      shown.map(([key, value, more]) => h(
        "div",
        null,
        h("dt", null, t(String(key), { count: value })),
        h("dd", null, number(Number(value)), more && " ", more && h("small", null, more)),
      )),
    );
  }

  /** The groups that may take part; all others only have bookings too. @returns {any[]} */
  function eligibleGroups() {
    const names = new Set(campaign.eligibleGroups.flat());
    return statistics.groups.nodes.filter((/** @type {any} */ each) => names.has(each.group)).sort((
      /** @type {any} */ a,
      /** @type {any} */ b,
    ) => compareNames(a.group, b.group));
  }

  function chartPart() {
    const points = statistics.timeSeries ?? [];
    const { ms, label } = interval();
    const columns = Math.max(points.length, MIN_BARS);
    const step = niceStep(statistics.places / 3);
    const lines = Math.max(1, Math.ceil(statistics.places / step));
    const top = step * lines;
    const height = 150;
    const marks = [0, 1, 2, 3].map((each) => Date.parse(points[0]?.at ?? campaign.opensAt) + (each * columns * ms) / 3);
    const sentence = t("monitor.chartText", {
      first: points[0]?.taken ?? 0,
      time: points.length ? timeOf(points[0].at, schoolZone) : "",
      last: statistics.taken,
      count: statistics.places,
    });
    return section("taken", t("monitor.chart"), [
      Date.parse(campaign.opensAt) > now() || !points.length
        ? h("p", { class: "soft" }, t("monitor.noChart"))
        : h(
            "div",
            { class: "chart" },
            h("p", { class: "y", "aria-hidden": "true" }, Array.from({ length: lines + 1 }, (_, each) => h("span", null, number((lines - each) * step)))),
            svg(
              "svg",
              { viewBox: `0 0 ${columns * 10} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": sentence },
              Array.from({ length: lines + 1 }, (_, each) => svg("line", { x2: columns * 10, y1: (height * each) / lines, y2: (height * each) / lines })),
              points.map((/** @type {any} */ point, /** @type {number} */ index) => {
                const tall = (height * point.taken) / top;
                return svg("rect", { x: index * 10 + 1, y: height - tall, width: 8, height: tall });
              }),
            ),
            h("p", { class: "x", "aria-hidden": "true" }, marks.map((at) => h("span", null, label(new Date(at), schoolZone)))),
          ),
    ], SHEET);
  }

  function slotsPart() {
    const order = statistics.slots.nodes
      .filter((/** @type {any} */ each) => each.slot)
      .sort((
        /** @type {any} */ a,
        /** @type {any} */ b,
      ) => b.taken / b.places - a.taken / a.places || b.waiting - a.waiting || compareNames(a.slot.title, b.slot.title));
    return section("clubs", t("monitor.slots"), [
      order.length
        ? list(
          "ol",
          { class: "fill" },
          order.map((/** @type {any} */ each) => ({ key: each.slot.id, signature: JSON.stringify(each), build: () => slotEntry(each) })),
        )
        : notice("", "list", t("empty.campaign")),
    ], SHEET);
  }

  /** @param {any} each */
  function slotEntry({ slot, places: all, taken, waiting }) {
    const text = h(taken < all ? "span" : "b", null, t("monitor.takenOf", { taken, count: all }));
    return h(
      "li",
      { "data-key": slot.id },
      h("strong", null, h("a", { href: `#/course/${slot.id}` }, slot.title)),
      level(taken, all),
      h("span", null, text, waiting > 0 && h("span", { class: "soft" }, t("state.waitingCount", { count: waiting }))),
    );
  }

  function unplacedPart() {
    const groups = eligibleGroups().map((each) => ({ group: each.group, count: Math.max(each.userCount - each.booked, 0) })).filter((each) => each.count);
    return section("none", t("monitor.unplaced"), [
      !unplaced && groups.length > 0 && h("dl", { class: "facts" }, groups.flatMap((each) => [h("dt", null, each.group), h("dd", null, number(each.count))])),
      unplaced && names(unplaced),
      unplacedState && unplacedState !== "loading" && failure(unplacedState, showUnplaced),
      h(
        "div",
        { class: "row" },
        button(
          "second",
          [t(unplacedState === "loading" ? "monitor.reading" : unplaced ? "monitor.again" : "monitor.names"), whose(t("monitor.unplaced"))],
          showUnplaced,
        ),
        statistics.withoutBooking > 0 && letter.button(),
        unplaced && unplaced.length > 0 && button("plain", t("csv.save"), saveUnplaced),
        unplaced && button("plain", t("monitor.hide"), () => {
          hideUnplaced();
          redraw();
        }),
      ),
      letter.render(),
    ], { ...SHEET, actions: h("span", { class: "soft" }, number(statistics.withoutBooking)) });
  }

  /** @param {any[]} found */
  function names(found) {
    if (!found.length) return notice("yours", "tick", t("monitor.allPlaced"));
    const groups = [...new Set(found.flatMap(({ user }) => user.groups ?? []))].sort(compareNames);
    const isShown = (/** @type {any} */ { user }) => !groups.includes(unplacedGroup) || user.groups.includes(unplacedGroup);
    const options = /** @type {Array<[string, string]>} */ ([["", t("mail.anyState")], ...groups.map((each) => [each, each])]);
    return [
      groups.length > 1 && choice("unplaced-group", t("form.group"), options, unplacedGroup, (value) => (unplacedGroup = value)),
      list("ul", { class: "stack tight" }, found.filter(isShown).map(({ user, waiting }) => ({
        key: user.id,
        signature: JSON.stringify([user, waiting]),
        build: () => unplacedItem(user, waiting),
      }))),
    ];
  }

  /** @param {any} user @param {any[]} waiting what the user waits for */
  function unplacedItem(user, waiting) {
    const titles = commas(waiting.map((each) => each.slot.title));
    const facts = [commas(user.groups ?? []), waiting.length && t("monitor.waits", { titles })];
    return h(
      "li",
      null,
      userLink(user, listName(user)),
      h("span", { class: "small soft" }, ` ${facts.filter(Boolean).join(" · ")} `),
      !user.banned && control("a", { href: `#/people/${user.id}/give/${campaignId}` }, [t("place.give"), whose(user.name)]),
    );
  }

  function logPart() {
    const opensAt = Date.parse(campaign.opensAt);
    const isForAll = Boolean(document.fullscreenElement); // names are not for the wall
    const shown = inLines(entries).filter((each) => !isForAll || !each.user).map((each) => ({ at: Date.parse(each.at), text: sentence(each) }));
    if (opensAt <= now()) shown.push({ at: opensAt, text: t("monitor.opened") });
    for (const { slot, fullSince } of statistics.slots.nodes) {
      const at = Date.parse(fullSince ?? "");
      if (slot && at) shown.push({ at, text: fullText(slot.title, at - opensAt) });
    }
    shown.sort((a, b) => b.at - a.at);
    return section("log", t("monitor.log"), [
      shown.length
        ? h(
          "ol",
          { class: "log" },
          shown
            .slice(0, SHOWN_ENTRIES)
            .map(({ at, text }) => h("li", null, h("time", { datetime: new Date(at).toISOString() }, when(at)), h("span", null, text))),
        )
        : h("p", { class: "soft" }, t("monitor.noLog")),
    ], SHEET);
  }

  return {
    title: () => t("monitor.title", { name: campaign?.name ?? "" }),
    width: /** @type {"split"} */ ("split"),
    render,
    leave() {
      isLeft = true;
      clearTimeout(timer);
      clearInterval(clock);
      document.removeEventListener("fullscreenchange", redraw);
      if (document.fullscreenElement) document.exitFullscreen();
    },
  };
}

/** Compare people by their classes, and then by their names. @param {any} a @param {any} b */
function byGroups(a, b) {
  const [first, second] = [a, b].map(({ user }) => commas(user.groups ?? []));
  return compareNames(first, second) || byListName(a, b);
}

/** Return a step of 1, 2 or 5 times a power of ten that is at least this. @param {number} least */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least) ?? power;
}

/** Return the time of an entry, with its day if that is another one. @param {number} at */
function when(at) {
  const isToday = new Date(at).toDateString() === new Date(now()).toDateString();
  return isToday ? secondOf(at) : shortOf(new Date(at), schoolZone);
}

/** Return a time of day, as 15:00:07. @param {string | number} at */
function secondOf(at) {
  return timeFormat(schoolZone, { timeStyle: "medium", hourCycle: "h23" }).format(new Date(at));
}

/** Say that a course is full, and in the rush how soon. @param {string} slot its title @param {number} ms since the opening */
function fullText(slot, ms) {
  if (ms < 0 || ms > DAY_MS) return t("monitor.isFull", { slot });
  const time = ms < MINUTE_MS ? unitFormat("second").format(Math.round(ms / 1000)) : durationOf(Math.round(ms / MINUTE_MS));
  return t("monitor.isFullAfter", { slot, time });
}

/** Leave out the places that a draw gave, between its publication and the end of the admission by draw. @param {any[]} entries the newest first */
function withoutDrawn(entries) {
  let isDrawn = false;
  return entries.filter(({ action, edits }) => {
    if (edits.some((/** @type {any} */ { field, before }) => field === "admission" && before === "DRAW")) isDrawn = true;
    if (action === "DRAW_PUBLISHED") isDrawn = false;
    return !isDrawn || action !== "BOOKED";
  });
}

/**
 * Return entries, of which a move is one line, and so are the end of a course with its places, and courses that were published one
 * after the other.
 * @param {any[]} entries @returns {any[]}
 */
function inLines(entries) {
  const keyOf = (/** @type {any} */ { at, slot }) => `${at} ${slot?.id}`;
  const ended = new Set(entries.filter(({ action }) => action === "SLOT_CANCELLED").map(keyOf));
  /** @type {any[]} */
  const lines = [];
  for (const found of withoutHalves(entries)) {
    const entry = { ...found, action: isPublished(found) ? "SLOT_PUBLISHED" : found.action };
    if (entry.action === "SLOT_CREATED") continue;
    const last = lines[lines.length - 1];
    if (ENDED.includes(entry.action) && ended.has(keyOf(entry))) continue;
    if (entry.action === "SLOT_PUBLISHED" && last?.action === entry.action && last.by?.id === entry.by?.id) last.count += 1;
    else lines.push({ ...entry, count: 1 });
  }
  return lines;
}

/** Whether a course was published when it was created. @param {any} entry */
function isPublished({ action, edits }) {
  return action === "SLOT_CREATED" && edits.some((/** @type {any} */ { field, after }) => field === "status" && after === "PUBLISHED");
}

/** Return what happened. @param {any} entry of the audit log */
function sentence(entry) {
  const { action, count, movedFrom, movedTo, slot, user } = entry;
  const by = entry.by?.name ?? t("monitor.nobody");
  const isOther = entry.by && user && entry.by.id !== user.id;
  const way = (movedFrom || movedTo) && [movedFrom ?? slot, movedTo ?? slot].map((each) => each?.title ?? "").join(" → ");
  const { subject, recipientCount: recipients } = Object.fromEntries(entry.edits.map((/** @type {any} */ each) => [each.field, each.after]));
  const named = { by, user: user?.name ?? "", slot: way ?? slot?.title ?? "", edits: commas(editTexts(entry).slice(0, 3)), count, subject, recipients };
  const key = count > 1 ? "monitor.publishedMany" : `monitor.log.${action}`;
  return t(isOther ? `${key}.by` : key, named, t(key, named, action));
}
