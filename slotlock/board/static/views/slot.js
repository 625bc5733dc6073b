// @ts-check
/** One course: what it is, one's place in it or in its line, and what else is free then. */
import { cancel, cancelUntil, deciding, leave, leaveQueue, onChange, sayDeadlines, watchMine } from "../bookings.js";
import { now } from "../clock.js";
import { me, run } from "../client.js";
import { h, list, redraw } from "../kernel.js";
import { keptSlot } from "../offline.js";
import { markdown } from "../markdown.js";
import { askOnce, bones, bookingActions, button, checkInCodeFigure, dashes, failure, freshness, icon, notice, section, whose, zoneNote } from "../parts.js";
import { awaitPeople, others, placeIn, shows } from "../people.js";
import { footOf, slotRow, whereOf } from "../rows.js";
import { audienceOf, drawOf, freePlaces, groupsOf, isForMe, opening, shownState } from "../slotstate.js";
import { LiveSlots } from "../store.js";
import { dayOf, durationOf, listOf, moment, ordinal, rhythmOf, asSentence, sentences, shortDayOf, shortOf, t, timeOf, weekdayOf } from "../text.js";

/** The dashes of a line: more people than this are not drawn. */
const MAX_DASHES = 30;
/** How many meetings a course lists before the others are behind a button. */
const MEETINGS = 12;

/** @param {string} part the id, with /swap to choose another course for it */
export function openSlot(part) {
  const [slotId, mode] = part.split("/");
  const isSwapping = mode === "swap";
  let areAllMeetings = false;
  /** Whether the place was given back here. */
  let isGivenBack = false;
  /** The draw of its campaign, while it is one. @type {ReturnType<typeof drawOf> | undefined} */
  let byLot;
  const live = new LiveSlots(read);

  async function read() {
    const { slot } = await run(shows.slot(), { id: slotId }).catch((error) => {
      const kept = (shows.kept ?? keptSlot)(slotId);
      if (kept && error.code === "OFFLINE") return { slot: kept };
      throw error;
    });
    if (!slot) return null;
    shows.check?.();
    if (slot.campaign?.admission === "DRAW" && !live.isLeft) byLot ??= drawOf(slot.campaign.id, () => live.load());
    const more = await readOthers(slot).catch(() => []);
    return [slot, ...(more ?? []).filter((each) => each.id !== slot.id)];
  }

  /** @param {any} slot @returns {Promise<any[] | null>} */
  async function readOthers(slot) {
    if (!slot.campaign) return [];
    if (slot.myBooking && isSwapping) return shows.read("slotsOfCampaign", { campaign: slot.campaign.id }, "slots");
    const isOff = slot.status === "CANCELLED"; // then what is free at that time
    if (!isOff && (slot.myBooking || (freePlaces(slot) > 0 && !slot.myWaitlistEntry))) return [];
    const { startTime: from, endTime: until } = slot.meetings.find((/** @type {any} */ each) => Date.parse(each.endTime) > now()) ?? slot;
    return shows.read("slotsOfCampaign", { campaign: slot.campaign.id, from, until }, "slots");
  }

  const stopListening = onChange((id, change, userId) => {
    const find = () => live.items?.find((each) => each.id === id);
    const slot = find();
    if (slot) live.apply(`mine ${id} ${userId}`, () => Object.assign(placeIn(find(), userId), change));
    if (slot && id === slotId) isGivenBack = !userId && change.myBooking === null;
    if (slot && change.movedFrom) return location.replace(`#/slot/${id}`);
    if (slot) live.load();
  });
  // Another position comes with another length of the waiting list.
  const stopWatching = watchMine(() => live.load(), (id) => live.items?.find((each) => each.id === id), () => live.load());
  const timer = setInterval(() => {
    awaitPeople();
    sayDeadlines(live.items);
    redraw();
  }, 1000);

  function render() {
    const slot = live.items?.[0];
    if (!slot) return live.error ? [h("h1", null, t("tab.courses")), failure(live.error, () => live.load())] : [bones(3)];
    const campaign = slot.campaign;
    const opensAt = Date.parse(campaign?.opensAt ?? "") || 0;
    const context = {
      opensAt,
      isOld: live.state === "old" && Date.now() - live.readAt > 60_000,
      readAt: live.readAt,
      isForOthers: !isForMe(campaign),
      isByLot: campaign?.admission === "DRAW",
      isPage: true,
    };
    return [
      h(
        "div",
        { class: "top span" },
        h("p", null, h("a", { href: campaign ? `#/campaign/${campaign.id}` : "#/" }, campaign?.name ?? t("tab.courses"))),
        freshness(live.state),
        h("h1", null, slot.status === "CANCELLED" ? h("s", null, slot.title) : slot.title),
        h("p", { class: "soft" }, [when(slot), whereOf(slot)].filter(Boolean).join(" · ")),
      ),
      zoneNote(slot.timeZone),
      h(
        "div",
        { class: "stack loose" },
        context.isByLot && byLot?.panel(campaign, null, ""),
        isGivenBack && notice("", "undo", t("said.cancelBooking", slot)),
        slot.familyPlaces ? shows.places?.(slot, context, () => place({ ...slot, familyPlaces: null }, context)) : place(slot, context),
        forOthers(slot, context),
        dates(slot, context),
        about(slot, context),
      ),
      aside(slot, context),
    ];
  }

  /** @param {any} slot @param {any} context */
  function place(slot, context) {
    const sent = deciding.get(slot.id);
    if (sent?.ticketId) return queue(slot, sent);
    if (slot.myWaitlistEntry && !sent) return line(slot);
    if (slot.myBooking?.status === "CONFIRMED" && slot.status !== "CANCELLED" && !sent) return code(slot);
    const shown = shownState(slot, context);
    return h(
      "section",
      { class: "slots", "aria-labelledby": "place", "data-key": "place", tabindex: -1 },
      h("h2", { id: "place", class: "vh" }, t("slot.place")),
      h("div", { class: "slot alone", "data-state": shown.state }, footOf(shown)),
    );
  }

  /** Whether members can book. @param {any} slot @param {any} context */
  function isOpen(slot, context) {
    return context.opensAt <= now() && !["CLOSED", "DRAW_ONLY"].includes(slot.myEligibility?.refusal?.code);
  }

  /** Offer all dates of a series. @param {any} slot @param {any} context */
  function dates(slot, context) {
    if (!slot.series || !me || slot.admission !== "ANY" || !isOpen(slot, context)) return null;
    shows.load();
    return shows.dates?.(slot);
  }

  /** Choose for whom to book, and show which places others have. @param {any} slot @param {any} context */
  function forOthers(slot, context) {
    if (!others().length) return null;
    const hasMe = Boolean(shownState(slot, context).isForAll);
    const sent = deciding.get(slot.id);
    const isChoosing = slot.familyPlaces ? hasMe : freePlaces(slot) > 0 && (!sent || Boolean(sent.ticketId)) && isOpen(slot, context);
    return shows.below?.(slot, { isChoosing, hasMe, isPage: true });
  }

  /** Show a place in the waiting line. @param {any} slot */
  function line(slot) {
    const { position, since } = slot.myWaitlistEntry;
    const all = Math.max(slot.waitlistLength, position ?? 1);
    const before = position > 1 ? t("slot.before", { count: position - 1 }) : position && t("slot.nobody");
    const after = position && all > position ? t("slot.after", { count: all - position }) : "";
    const offer = slot.waitlistOfferMinutes;
    return h(
      "section",
      { class: "sheet stack line", "aria-labelledby": "turn", "data-key": "place", tabindex: -1 },
      h("h2", { id: "turn", class: "vh" }, t("slot.line")),
      position && h("p", { class: "turn" }, ordinal(position), " ", h("small", null, t("slot.inLine"))),
      position && h("div", null, people(all, position)),
      h(
        "p",
        null,
        sentences([
          before && after ? t("slot.both", { before, after }) : before && asSentence(before),
          t("slot.since", { time: opening(since, slot.timeZone) }),
        ]),
      ),
      notice("wait", "clock", offer ? t("slot.offer", { time: durationOf(offer) }) : t("slot.direct")),
      askOnce(
        `leave ${slot.id}`,
        "final fit",
        { label: [t("slot.leave"), whose(slot.title)], question: t("slot.leaveAsk"), yes: t("slot.leave"), no: t("slot.stay") },
        () => leave(slot),
      ),
    );
  }

  /** Show a place in the booking queue. @param {any} slot @param {any} sent */
  function queue(slot, sent) {
    const { position } = sent;
    return h(
      "section",
      { class: "sheet stack line deciding", "aria-labelledby": "turn", "data-key": "place", tabindex: -1 },
      h("h2", { id: "turn", class: "vh" }, t("slot.queue")),
      position ? h("p", { class: "turn" }, ordinal(position), " ", h("small", null, t("slot.inQueue"))) : h("p", null, h("strong", null, t("action.deciding"))),
      position && h("div", null, people(position, position)),
      h("p", null, sent.isLost ? t("state.noConnection") : t("slot.queueHelp")),
      askOnce(
        `queue ${slot.id}`,
        "final fit",
        { label: t("slot.leaveQueue"), question: t("slot.queueAsk"), yes: t("slot.leaveQueue"), no: t("slot.stay") },
        () => leaveQueue(slot.id),
      ),
    );
  }

  /** Show one's own place: its code, swap, and give back. @param {any} slot */
  function code(slot) {
    const { checkInQr, attendance } = slot.myBooking;
    const cutoff = cancelUntil(slot);
    const isOver = Date.parse(slot.endTime) < now();
    return h(
      "section",
      { class: "sheet stack", "aria-labelledby": "yours", "data-key": "place", tabindex: -1 },
      h("h2", { id: "yours" }, icon("tick", "good"), " ", t("state.yours")),
      attendance === "CHECKED_IN" && h("p", null, t("slot.present")),
      !isOver && checkInQr && checkInCodeFigure(slot.myBooking, slot.title),
      !isOver && cutoff > now() && bookingActions(slot, slot.myBooking.calendarUrl, !isSwapping, () => cancel(slot)),
      !isOver && h("p", { class: "small soft" }, cutoff > now() ? t("slot.cancelUntil", { time: opening(cutoff, slot.timeZone) }) : t("refusal.CUTOFF_PASSED")),
    );
  }

  /** @param {any} slot @param {any} context */
  function about(slot, { isByLot }) {
    const count = slot.meetings.length;
    const shown = areAllMeetings ? slot.meetings : slot.meetings.slice(0, MEETINGS);
    const resources = slot.resources.map((/** @type {any} */ each) => each.name);
    /** @type {Array<[string, any] | false>} */
    const facts = [
      count > 1 && [t("slot.dates"), [
        t("slot.meetings", { count }),
        h("ul", { class: "dates" }, shown.map((/** @type {any} */ each) => h("li", null, dateText(each, slot.timeZone)))),
        count > shown.length && button("plain", t("slot.allDates", { count }), () => {
          areAllMeetings = true;
          redraw();
        }),
      ]],
      slot.location && [t("slot.where"), slot.location],
      slot.meetingUrl && [t("slotForm.meetingUrl"), h("a", { href: slot.meetingUrl, rel: "noopener noreferrer" }, slot.meetingUrl)],
      resources.length > 0 && [t("slot.with"), listOf(resources)],
      slot.capacity && [
        t("slot.places"),
        freePlaces(slot) > 0 && !isByLot
          ? t("state.free", { free: slot.remaining, all: slot.capacity, count: slot.remaining })
          : t(slot.remaining > 0 ? "state.places" : "slot.allTaken", { count: slot.capacity }),
      ],
      ...limits(slot),
      !slot.myBooking && [
        t("week.giveBack"),
        cancelUntil(slot) > now() ? t("open.cancelUntil", { time: opening(cancelUntil(slot), slot.timeZone) }) : t("slot.notBack"),
      ],
    ];
    return section("about", t("slot.about"), [
      markdown(slot.description),
      h("dl", { class: "facts" }, facts.flatMap((fact) => (fact ? [h("dt", null, fact[0]), h("dd", null, fact[1])] : []))),
    ]);
  }

  /** Return who may book how much here. @param {any} slot @returns {Array<[string, any] | false>} */
  function limits(slot) {
    const { campaign, groupLimits = [] } = slot;
    const all = [groupLimits, campaign?.groupLimits ?? []];
    const shown = me?.role === "MEMBER" ? (me.groups ?? []).flatMap((/** @type {string} */ group) => limitOf(all, group)) : all.flat();
    const text = (/** @type {{group: string, limit: number}} */ { group, limit }) => {
      if (group === "*") return t("slot.limitEach", { count: limit });
      return t(group.endsWith("*") ? "slot.limitBegins" : "slot.limit", { group: group.replace(/\*$/, ""), count: limit });
    };
    const groups = [audienceOf(campaign), groupsOf(slot)].filter(Boolean).join(" · ");
    return [
      Boolean(groups) && [t("slot.for"), groups],
      shown.length > 0 && [t("slot.limits"), h("ul", null, shown.map((/** @type {any} */ each) => h("li", null, text(each))))],
      campaign?.maxBookings > 0 && [t("slot.most"), t("slot.mostOf", { count: campaign.maxBookings, name: campaign.name })],
    ];
  }

  /** @param {any} slot @param {any} context */
  function aside(slot, context) {
    const free = (live.items ?? []).slice(1).filter((each) => freePlaces(each) > 0 && !each.myBooking && isForMe(slot.campaign, each));
    const isOff = slot.status === "CANCELLED";
    const swapFrom = isSwapping && !isOff && slot.myBooking && { id: slot.myBooking.id, title: slot.title };
    if (!swapFrom && ((slot.myBooking && !isOff) || !free.length)) return null;
    const rows = free.map((each) => slotRow(each, { ...context, isPage: false, swapFrom, isAside: true, isOfAnyDay: Boolean(swapFrom) }));
    const help = swapFrom ? t("slot.swapHelp") : slot.myWaitlistEntry && t("slot.keepsPlace");
    return h(
      "aside",
      { class: "stack", "aria-labelledby": "free" },
      h("h2", { id: "free" }, t(swapFrom ? "slot.swapTo" : "slot.meanwhile")),
      rows.length ? list("ol", { class: "slots" }, rows) : h("p", { class: "soft" }, t("slot.noSwap")),
      help && h("p", { class: "small soft" }, help),
    );
  }

  return {
    title: () => live.items?.[0]?.title ?? t("tab.courses"),
    width: /** @type {"split"} */ ("split"),
    render,
    leave() {
      live.leave();
      stopListening();
      stopWatching();
      clearInterval(timer);
      byLot?.stop();
    },
  };
}

/** Return the people in a line as dashes, with oneself in the color of waiting. @param {number} all @param {number} position */
function people(all, position) {
  const first = Math.max(0, Math.min(position - MAX_DASHES / 2, all - MAX_DASHES));
  const count = Math.min(all, MAX_DASHES);
  const at = position - 1 - first;
  return dashes({ class: "places", width: Math.min(count * 20, 300), height: 12 }, count, "turn", at, at + 1);
}

/**
 * Return how many places a group may have, if that is limited. Of the limits of the course, and of those of its
 * campaign, the most exact one counts.
 * @param {Array<Array<{group: string, limit: number}>>} lists @param {string} group
 */
function limitOf(lists, group) {
  const found = lists.map((limits) => limits
    .filter((each) => each.group === group || (each.group.endsWith("*") && group.startsWith(each.group.slice(0, -1))))
    .sort((a, b) => Number(b.group === group) - Number(a.group === group) || b.group.length - a.group.length)
    .slice(0, 1)).flat();
  return found.length ? [{ group, limit: Math.min(...found.map((each) => each.limit)) }] : [];
}

/** @param {any} slot */
function when(slot) {
  const rhythm = rhythmOf({ ...slot, meetingCount: slot.meetings.length });
  const texts = slot.meetings.length === 1 ? [meetingText(slot.meetings[0], slot.timeZone), rhythm] : [
    rhythm,
    t("slot.fromTo", { from: dayOf(slot.startTime, slot.timeZone), until: dayOf(slot.endTime, slot.timeZone) }),
  ];
  return texts.filter(Boolean).join(" · ");
}

/** Return a date of several, which are in order. @param {any} meeting @param {string} zone */
function dateText({ startTime, endTime }, zone) {
  const end = weekdayOf(startTime, zone) === weekdayOf(endTime, zone) ? timeOf(endTime, zone) : shortOf(endTime, zone);
  return moment(moment(weekdayOf(startTime, zone), shortDayOf(startTime, zone)), `${timeOf(startTime, zone)}–${end}`);
}

/** @param {any} meeting @param {string} zone */
function meetingText({ startTime, endTime }, zone) {
  const end = dayOf(startTime, zone) === dayOf(endTime, zone) ? timeOf(endTime, zone) : shortOf(endTime, zone);
  return moment(dayOf(startTime, zone), `${timeOf(startTime, zone)}–${end}`);
}
