// @ts-check
/** My week: the next code, the meetings of a week, and the calendar that follows them. */
import { cancel, cancelUntil, confirm, deciding, onChange, sayDeadlines, watchMine } from "../bookings.js";
import { now } from "../clock.js";
import { hasSession, me, run } from "../client.js";
import { h, redraw } from "../kernel.js";
import { keepWeek, keptWeek } from "../offline.js";
import { bones, bookingActions, button, checkInCodeFigure, failure, freshness, icon, notice, whose, zoneNote } from "../parts.js";
import { site } from "../page.js";
import { children, placeKey, shows } from "../people.js";
import { whereOf } from "../rows.js";
import { offText, opening } from "../slotstate.js";
import { isLive, onMissed } from "../socket.js";
import { readerOf } from "../store.js";
import { calendarFeed } from "./feed.js";
import { countdown, dateKey, dayOf, hoursOf, ordinal, periods, schoolZone, shortDayOf, t, timeOf, weekdayOf } from "../text.js";

const DAY_MS = 86_400_000;
/** The hours of a day that has nothing earlier or later. */
const HOURS = [8, 18];
/** A meeting shorter than this is drawn as long, in hours, so that its name can be read. */
const SHORTEST = 0.75;

/**
 * A meeting of a booking, or of a place in a line, on its day.
 * @typedef {{key: string, slot: any, booking: any, entry: any, startTime: string, endTime: string, from: number, to: number, lane: number, lanes: number}}
 *   Entry
 */

export function openWeek() {
  /** @type {{user: string, bookings: any[], entries: any[], readAt: number} | null} */
  let week = keptWeek();
  let isLeft = false;
  /** The first day shown, as the noon of a Monday in UTC, or 0 for the one that fits. */
  let shownMonday = 0;
  /** The title of what was given back here. */
  let givenBack = "";
  /** Whether the codes of all courses are shown, as to print them. */
  let hasAllCodes = false;
  const feed = calendarFeed();

  const load = readerOf(async () => {
    if (!me) return;
    const user = me.id;
    if (week?.user !== user) week = null;
    const { read } = shows;
    const [bookings, entries] = await Promise.all([read("myWeek", {}, "myBookings"), read("myWaitlistEntries", {}, "myWaitlistEntries")]);
    await addCodes(bookings ?? [], week?.bookings ?? []);
    if (isLeft) return;
    week = { user, bookings: bookings ?? [], entries: entries ?? [], readAt: Date.now() };
    keepWeek(week, children());
  });
  load();
  const stopListening = onChange((_, change) => {
    if (change.myBooking === null) givenBack = change.title; // the week may have been read since
    load();
  });
  const stopReading = onMissed(load);
  const stopWatching = watchMine(load, (id) => {
    const entry = week?.entries.find(({ slot }) => slot.id === id && !slot.person);
    return { ...entry?.slot, myWaitlistEntry: entry };
  });
  const timer = setInterval(() => {
    sayDeadlines(week?.bookings.map((booking) => ({ ...booking.slot, myBooking: booking })));
    if (!isLive() && Date.now() - (week?.readAt ?? 0) > 30_000) load();
    else redraw();
  }, 15_000);

  const counting = setInterval(() => held().length && redraw(), 1000);

  function render() {
    if (!me && !hasSession())
      return [h("h1", null, t("tab.week")), notice("", "person", t("week.signIn"), h("a", { class: "btn", href: "#/signin" }, t("tab.signin")))];
    if (!week) return [h("h1", null, t("tab.week")), load.error ? failure(load.error, load) : bones(4)];
    const shown = shows.ofWeek?.(week) ?? { ...week, days: week };
    const all = entriesOf(shown.days);
    const monday = shownMonday || mondayOf(all);
    const next = nextOf(shown);
    if (all.length) shownMonday = monday; // giving back the last one moves nothing
    const others = shown.bookings.filter((each) => each !== next && each.checkInQr)
      .sort((a, b) => a.slot.startTime.localeCompare(b.slot.startTime)); // of one start, those of oneself and each child
    const zones = [...new Set(all.map((each) => each.slot.timeZone))];
    return [
      h("p", { class: "printed span" }, [me?.name, ...(me?.groups ?? []), site.name].filter(Boolean).join(" · "), h("br"), weekText(monday)),
      h(
        "div",
        { class: "row span" },
        h("h1", null, t("tab.week")),
        freshness(isLive() && me ? "live" : "old"),
        h(
          "div",
          { class: "row push" },
          button("plain", t("week.before"), () => turn(monday - 7 * DAY_MS)),
          button("plain", t("week.after"), () => turn(monday + 7 * DAY_MS)),
          others.length > 0 && button("plain", t("week.codes"), toggleCodes, { "aria-expanded": String(hasAllCodes) }),
          feed.button(),
        ),
      ),
      shows.chips?.(),
      feed.panel(),
      hasAllCodes && h("ul", { class: "codes span" }, others.map(codeItem)),
      zones.map(zoneNote),
      givenBack && h("div", { class: "span" }, notice("", "undo", t("said.cancelBooking", { title: givenBack }), courses())),
      next && nextCode(next),
      reserved(),
      days(all, monday),
    ];
  }

  function toggleCodes() {
    hasAllCodes = !hasAllCodes;
    redraw();
  }

  /** Return the bookings that are to be confirmed. */
  function held() {
    return (week?.bookings ?? []).filter(({ status, heldUntil }) => status === "HELD" && Date.parse(heldUntil) > now());
  }

  /** Confirm all that is reserved, with the time that is left of the first one, or give each back. */
  function reserved() {
    const all = held().map((booking) => ({ ...booking.slot, myBooking: booking }));
    if (!all.length || !me) return null;
    const time = countdown(Math.min(...all.map((each) => Date.parse(each.myBooking.heldUntil))) - now());
    const row = (/** @type {any} */ slot) => h("li", null, slot.title, " ", button("plain", [t("week.giveBack"), whose(slot.title)], () => cancel(slot)));
    return h("div", { class: "span", "data-key": "reserved" }, notice("wait", "clock", t("state.left", { time }), [
      button("", t("week.confirm", { count: all.length }), () => all.forEach(confirm), { disabled: all.some((each) => deciding.has(placeKey(each))) }),
      h("ul", null, all.map(row)),
    ]));
  }

  /** Return the way to what can be booked. */
  function courses() {
    return h("a", { class: "btn second", href: "#/" }, t("news.see"));
  }

  /** Say that nothing is in a week, and what comes later. @param {Entry[]} all @param {number} monday */
  function emptyWeek(all, monday) {
    const later = all.filter((each) => Date.parse(each.startTime) > monday && Date.parse(each.endTime) > now())[0];
    const next = later && mondayOf([later]);
    return notice("", "week", [weekText(monday), h("br"), t("week.nothing")], [
      next && button("second", weekText(next), () => turn(next)),
      !givenBack && courses(),
    ]);
  }

  /** @param {number} monday */
  function turn(monday) {
    shownMonday = monday;
    givenBack = "";
    redraw();
  }

  /** @param {any} booking */
  function nextCode(booking) {
    const { slot } = booking;
    const meeting = comingOf(slot);
    const cutoff = cancelUntil(slot);
    return h(
      "aside",
      { class: "sheet stack side", "aria-labelledby": "next", "data-key": `next ${booking.id}` },
      h("h2", { id: "next" }, t("week.next", { title: slot.title })),
      h(
        "p",
        { class: "soft" },
        [
          `${opening(meeting.startTime, slot.timeZone)}–${timeOf(meeting.endTime, slot.timeZone)}`,
          periods.of([meeting], slot.timeZone),
          whereOf(slot),
        ].filter(Boolean).join(" · "),
      ),
      booking.checkInQr && checkInCodeFigure(booking, slot.title),
      cutoff > now() && bookingActions(slot, booking.calendarUrl, true, () => cancel({ ...slot, myBooking: booking })),
      cutoff > now() && h("p", { class: "small soft" }, t("slot.cancelUntil", { time: opening(cutoff, slot.timeZone) })),
    );
  }

  /** @param {Entry[]} all @param {number} monday */
  function days(all, monday) {
    const keys = Array.from({ length: 7 }, (_, index) => dateKey(new Date(monday + index * DAY_MS), "UTC"));
    const byKey = keys.map((key) => all.filter((each) => dateKey(each.startTime, each.slot.timeZone) === key));
    const shown = byKey.slice(5).some((each) => each.length) ? 7 : 5;
    const inWeek = byKey.slice(0, shown).flat();
    if (!inWeek.length) return emptyWeek(all, monday);
    const first = Math.min(HOURS[0], ...inWeek.map((each) => Math.floor(each.from)));
    const last = Math.max(HOURS[1], ...inWeek.map((each) => Math.ceil(each.to)));
    const hours = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const today = dateKey(new Date(now()), schoolZone);
    return h(
      "div",
      { class: "week", style: { "--days": shown, "--first": first, "--quarters": (last - first) * 4 }, "data-key": "week" },
      h("div", { class: "hours", "aria-hidden": "true" }, hours.map((hour) => h("span", { style: { "--from": hour } }, `${hour}:00`))),
      keys.slice(0, shown).map((key, index) => {
        const date = new Date(monday + index * DAY_MS);
        return h(
          "section",
          { "aria-labelledby": `d${index}`, "data-key": `day ${index}` },
          h(
            "h2",
            { id: `d${index}`, "aria-current": key === today && "date" },
            weekdayOf(date, "UTC"),
            " ",
            h("span", { class: "soft" }, shortDayOf(date, "UTC")),
          ),
          h(
            "ol",
            { class: "meetings", style: { "--lanes": Math.max(1, ...byKey[index].map((each) => each.lanes)) } },
            byKey[index].length ? byKey[index].map(meetingItem) : h("li", { class: "none soft" }, t("week.free")),
          ),
        );
      }),
    );
  }

  return {
    title: () => t("tab.week"),
    width: /** @type {"split"} */ ("split"),
    render,
    leave() {
      isLeft = true;
      stopListening();
      stopReading();
      stopWatching();
      clearInterval(timer);
      clearInterval(counting);
    },
  };
}

/** Give confirmed bookings their codes; each is read once. @param {any[]} bookings @param {any[]} known which may have codes */
async function addCodes(bookings, known) {
  const missing = bookings.filter((each) => {
    const { checkInQr, calendarUrl } = known.find(({ id }) => id === each.id) ?? each;
    return isComing(each) && !Object.assign(each, { checkInQr, calendarUrl }).checkInQr;
  }).slice(0, 20);
  const { nodes } = missing.length ? await run("checkInCodes", { ids: missing.map(({ id }) => id) }).catch(() => ({ nodes: [] })) : { nodes: [] };
  missing.forEach((each, index) => Object.assign(each, nodes[index]));
}

/** Return the meeting that comes next or goes on. @param {any} slot */
function comingOf({ meetings }) {
  return meetings.find((/** @type {any} */ each) => Date.parse(each.endTime) > now());
}

/** @param {any} booking */
function isComing({ status, slot }) {
  return status === "CONFIRMED" && comingOf(slot);
}

/** Return the confirmed booking whose meeting comes next or goes on. @param {any} week */
function nextOf(week) {
  const coming = week.bookings.filter((/** @type {any} */ each) => isComing(each) && each.slot.status !== "CANCELLED");
  const end = (/** @type {any} */ { slot }) => comingOf(slot).endTime;
  return coming.sort((/** @type {any} */ a, /** @type {any} */ b) => end(a).localeCompare(end(b)))[0];
}

/** Return all meetings, each with its lane among those at the same time. @param {any} week @returns {Entry[]} */
function entriesOf(week) {
  const held = [
    ...week.bookings.map((/** @type {any} */ booking) => ({ slot: booking.slot, booking })),
    ...week.entries.map((/** @type {any} */ entry) => ({ slot: entry.slot, entry })),
  ];
  const all = held.flatMap(({ slot, booking, entry }) => slot.meetings.map((/** @type {any} */ { startTime, endTime }) => {
    const from = Math.min(hoursOf(startTime, slot.timeZone), 24 - SHORTEST);
    const isSameDay = dateKey(startTime, slot.timeZone) === dateKey(endTime, slot.timeZone);
    const to = isSameDay ? Math.max(hoursOf(endTime, slot.timeZone), from + SHORTEST) : 24;
    return { key: `${placeKey(slot)} ${startTime}`, slot, booking, entry, startTime, endTime, from, to: Math.min(to, 24), lane: 0, lanes: 1 };
  }));
  all.sort((a, b) => a.startTime.localeCompare(b.startTime));
  share(all);
  return all;
}

/** Let meetings at the same time share the width. @param {Entry[]} all in order */
function share(all) {
  /** @type {Entry[]} */
  let group = [];
  let groupKey = "";
  let end = 0;
  for (const each of all) {
    const key = dateKey(each.startTime, each.slot.timeZone);
    if (key !== groupKey || each.from >= end) group = [];
    if (!group.length) end = 0;
    groupKey = key;
    const taken = new Set(group.filter((other) => other.to > each.from).map((other) => other.lane));
    while (taken.has(each.lane)) each.lane += 1;
    group.push(each);
    end = Math.max(end, each.to);
    const lanes = Math.max(...group.map((other) => other.lane)) + 1;
    for (const other of group) other.lanes = lanes;
  }
}

/** Return the days of a week. @param {number} monday */
function weekText(monday) {
  const [from, until] = [monday, monday + 6 * DAY_MS].map((each) => dayOf(new Date(each), "UTC"));
  return t("slot.fromTo", { from, until });
}

/** Return the Monday of this week, on a weekend of the next one, or of the week of what comes next, at noon in UTC. @param {Entry[]} all */
function mondayOf(all) {
  const today = dateKey(new Date(now()), schoolZone);
  const coming = all.filter((each) => dateKey(each.startTime, each.slot.timeZone) >= today)[0];
  const monday = (/** @type {string} */ key) => {
    const noon = Date.parse(`${key}T12:00:00Z`);
    return noon - ((new Date(noon).getUTCDay() + 6) % 7) * DAY_MS;
  };
  if (coming) return monday(dateKey(coming.startTime, coming.slot.timeZone));
  const isWeekend = Date.parse(`${today}T12:00:00Z`) - monday(today) > 4 * DAY_MS;
  return monday(today) + (isWeekend ? 7 : 0) * DAY_MS;
}

/** @param {any} booking */
function codeItem(booking) {
  const { title, startTime, timeZone } = booking.slot;
  return h("li", { "data-key": `code ${booking.id}` }, h("strong", null, title), h("br"), opening(startTime, timeZone), checkInCodeFigure(booking, title));
}

/** @param {Entry} each */
function meetingItem({ key, slot, booking, entry, startTime, endTime, from, to, lane, lanes }) {
  const isWaiting = !booking || booking.status === "HELD";
  const isCancelled = slot.status === "CANCELLED";
  const quarter = (/** @type {number} */ value) => Math.round(value * 4) / 4;
  let text = t("week.booked");
  if (isCancelled) text = offText(slot);
  else if (entry) text = entry.said ?? (entry.position ? t("week.waiting", { ordinal: ordinal(entry.position) }) : t("state.waitingSomewhere"));
  else if (isWaiting) text = t(booking.waitedSince ? "state.offered" : "state.held", { time: timeOf(booking.heldUntil, slot.timeZone) });
  return h(
    "li",
    {
      class: ["meeting", !isCancelled && (isWaiting ? "wait" : "yours"), lanes > 1 && "slim"].filter(Boolean).join(" "),
      "data-key": key,
      style: { "--from": quarter(from), "--to": quarter(to), "--lane": lane + 1, "--end": lane + 1 === lanes ? -1 : lane + 2 },
    },
    h(
      "span",
      { class: "at" },
      h("time", { datetime: startTime }, timeOf(startTime, slot.timeZone)),
      icon(isCancelled ? "warning" : entry ? "people" : isWaiting ? "clock" : "tick"),
    ),
    h("a", { href: `#/slot/${slot.id}` }, isCancelled ? h("s", null, slot.title) : slot.title),
    h("span", { class: "is soft" }, [periods.of([{ startTime, endTime }], slot.timeZone), whereOf(slot), text].filter(Boolean).join(" · ")),
  );
}
