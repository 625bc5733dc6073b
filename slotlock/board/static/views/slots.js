// @ts-check
/** The courses of a campaign: before the opening, during the rush, and after it. */
import { SEVERAL, deciding, onChange, refused, sayDeadlines, watchMine } from "../bookings.js";
import { say } from "../page.js";
import { isExact, now } from "../clock.js";
import { codeOf, me, run } from "../client.js";
import { h, list, redraw } from "../kernel.js";
import { markdown } from "../markdown.js";
import { bones, button, checkbox, dashes, failure, freshness, icon, notice, searchField, section, zoneNote } from "../parts.js";
import { awaitPeople, placeIn, shows, whom } from "../people.js";
import { byDay, slotRow } from "../rows.js";
import { drawOf, freePlaces, isForMe, opening, opensText, stars, stayUnder } from "../slotstate.js";
import { isLive, onMissed, subscribe } from "../socket.js";
import { LiveSlots } from "../store.js";
import { countdown, dayOf, durationOf, learnZone, number, schoolZone, t } from "../text.js";

/** After the opening, reads are spread over this time; bookings never. */
const READS_SPREAD_MS = 3000;
const MINUTE = 60;
/** So long the panel of the opening stays as large as its countdown: nothing moves under a thumb that books. */
const LARGE_MS = 10_000;
/** How many seconds before the opening a screen reader says so. */
const SPOKEN_S = [600, 300, 60, 10];

/** @param {string} part the id of a campaign, with /free to see only courses with free places */
export function openSlots(part) {
  const [campaignId, mode] = part.split("/");
  // Who reads of a course and comes back finds what they chose.
  if (whom.campaign !== campaignId) whom.several = null;
  whom.campaign = campaignId;
  /** @type {any} */
  let campaign = null;
  let error = "";
  let isOpened = false;
  const label = shows.text ?? t;
  const filters = { text: "", free: mode === "free", forMe: false };
  const live = new LiveSlots(() => {
    if (campaign && !isLive()) load();
    shows.check?.();
    return readSlots();
  }, campaignId);

  /** The courses that were cancelled, with one's own place or position. @type {any[]} */
  let cancelled = [];

  async function readSlots() {
    const slots = await shows.read("slotsOfCampaign", { campaign: campaignId }, "slots");
    return slots && withCancelled(slots);
  }

  /** @param {any[]} slots */
  function withCancelled(slots) {
    return [...slots.filter((each) => cancelled.every((other) => other.id !== each.id)), ...cancelled];
  }

  async function readCancelled() {
    const all = me ? await shows.read("cancelledSlots", { campaign: campaignId }, "slots").catch(() => null) : [];
    if (!all) return;
    cancelled = all.filter((each) => each.cancelledForMe);
    live.items &&= withCancelled(live.items);
    redraw();
  }

  /** The draw of the campaign, if it has one. @type {ReturnType<typeof drawOf> | undefined} */
  let byLot;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  async function load() {
    clearTimeout(again);
    const before = campaign?.admission;
    try {
      ({ campaign } = await run("campaign", { id: campaignId }));
      if (before && campaign?.admission !== before) live.load(); // so do its courses
      error = campaign ? "" : "CAMPAIGN_NOT_FOUND";
      if (Date.parse(campaign?.opensAt) < now()) readCancelled(); // nobody has one before
      // Without a socket this is read often, and a draw is not.
      if (byLot) campaign?.admission !== before && byLot.again();
      else if (!live.isLeft && (isByLot() || campaign?.draw)) byLot = drawOf(campaignId);
    } catch (caught) {
      error = codeOf(caught);
      if (!campaign) again = setTimeout(load, READS_SPREAD_MS * (0.5 + Math.random()));
    }
    redraw();
  }
  load();
  const stopReading = onMissed(load);
  const endChanges = subscribe("watchCampaigns", {}, ({ campaignChanges: change }) => {
    if (change.campaignId !== campaignId) return;
    // All pages learn of a result at once.
    if (campaign && change.campaign && change.campaign.admission !== campaign.admission) again = setTimeout(load, Math.random() * READS_SPREAD_MS);
    else if (change.campaign) campaign = { ...campaign, ...change.campaign };
    else load();
    redraw();
  });
  /** Whether the places are drawn, so that nobody books at the opening. */
  const isByLot = () => campaign?.admission === "DRAW";

  /** Whether the person was here at the opening: then a panel with the places stays where the countdown was. */
  let wasThere = false;
  let panelHeight = 0;
  let isSmall = false;
  const stopListening = onChange((slotId, change, userId) => {
    live.apply(`mine ${slotId} ${userId}`, () => {
      for (const slot of live.items ?? []) {
        if (slot.id === slotId) Object.assign(placeIn(slot, userId), change);
        else if (change.movedFrom && slot.myBooking?.id === change.movedFrom) slot.myBooking = null;
      }
    });
    if ("myBooking" in change) setTimeout(() => live.load(), Math.random() * READS_SPREAD_MS); // limits of others
  });
  const stopWatching = watchMine(() => readCancelled().then(() => live.load()), (id) => live.items?.find((each) => each.id === id));

  // Countdowns and deadlines go on by the second, and nothing else asks for a frame then.
  const timer = setInterval(() => {
    const opensAt = Date.parse(campaign?.opensAt ?? "");
    const isRunning = opensAt > now() && !isByLot();
    const leftS = Math.ceil((opensAt - now()) / 1000);
    if (isRunning && SPOKEN_S.includes(leftS)) say(t("open.in", { time: durationOf(leftS / 60) }));
    if (isRunning) isOpened = false;
    else if (!isOpened && campaign && !isByLot()) {
      isOpened = true;
      if (wasThere) say(t("open.now"));
      if (now() - opensAt < 5 * MINUTE * 1000) setTimeout(() => live.load(), Math.random() * READS_SPREAD_MS);
    }
    if (wasThere && !isSmall && now() - opensAt > LARGE_MS) {
      isSmall = true;
      const first = /** @type {HTMLElement | null} */ (document.querySelector("ol.slots"));
      if (first) stayUnder(first);
    }
    awaitPeople();
    sayDeadlines(live.items);
    redraw();
  }, 1000);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let instant;
  /** Draw at the instant of the opening, not up to a second later. */
  function drawAtOpening() {
    const leftMs = Date.parse(campaign?.opensAt ?? "") - now();
    clearTimeout(instant);
    if (leftMs > 0 && leftMs < 2 ** 30) instant = setTimeout(redraw, Math.min(leftMs + 5, 30_000));
  }

  function render() {
    drawAtOpening();
    if (error && !campaign) return [h("h1", null, t("tab.courses")), failure(error, load)];
    if (!campaign) return [bones(6)];
    const opensAt = Date.parse(campaign.opensAt);
    learnZone(live.items?.[0]);
    const zone = schoolZone;
    const zones = new Set([zone, ...(live.items ?? []).map((each) => each.timeZone)]);
    return [
      h("div", { class: "top" }, h("h1", null, campaign.name), freshness(live.state), summary(opensAt, zone)),
      [...zones].map(zoneNote),
      campaign.description && h("div", { class: "stack" }, markdown(campaign.description)),
      byLot?.panel(campaign, live.items, opensAt > now() ? opening(opensAt, schoolZone) : ""),
      isByLot() ? null : opensAt > now() ? (!byLot || live.items?.some(freePlaces)) && countdownPanel(opensAt, zone) : wasThere && openPanel(),
      filterRow(),
      slotLists(opensAt),
      severalBar(),
    ];
  }

  /** @param {number} opensAt @param {string} zone */
  function summary(opensAt, zone) {
    const mine = (live.items ?? []).filter((slot) => slot.myBooking).length;
    const closes = Date.parse(campaign.closesAt) > now() ? t("open.until", { time: opening(campaign.closesAt, zone) }) : t("open.over");
    const limit = campaign.maxBookings;
    const count = me && limit && !shows.family ? h("strong", null, t(mine ? "open.mine" : "open.can", { mine, count: limit })) : null;
    const isTaken = campaign.draw?.state === "PUBLISHED" && !live.items?.some(freePlaces);
    if (isByLot() || isTaken) return mine > 0 && h("p", { class: "soft" }, count);
    return h("p", { class: "soft" }, opensAt > now() ? opensText(opensAt, zone) : closes, count && " · ", count);
  }

  /** @param {number} opensAt @param {string} zone */
  function countdownPanel(opensAt, zone) {
    wasThere = true;
    const leftMs = opensAt - now();
    const seconds = Math.max(0, Math.ceil(leftMs / 1000));
    const rest = seconds % MINUTE || (seconds ? MINUTE : 0);
    const fits = (live.items ?? []).filter((slot) => isForMe(campaign, slot)
      && (slot.familyPlaces || !slot.myEligibility?.refusal || slot.myEligibility.refusal.code === "NOT_YET_OPEN")).length;
    const parts = countdown(leftMs).split(":").flatMap((part, index) => (index ? [h("i", null, ":"), h("span", null, part)] : [h("span", null, part)]));
    const ready = (/** @type {boolean} */ isDone, /** @type {any} */ text) => h("li", null, icon(isDone ? "tick" : "warning"), text);
    return panel(
      opensText(opensAt, zone),
      h("p", { class: "count", role: "timer", "aria-live": "off", "aria-label": durationOf(seconds / 60) }, parts),
      rest,
      t("open.byThemselves"),
      [
        ready(Boolean(me), me ? h("span", null, t("ready.signedIn", { name: me.name })) : h("a", { class: "btn second", href: "#/signin" }, t("ready.signIn"))),
        ready(isExact(), h("span", null, t(isExact() ? "ready.connected" : "ready.connecting"))),
        me && live.items && ready(true, h("span", null, label("ready.fits", { fits, count: live.items.length }))),
      ],
    );
  }

  /**
   * Return the loud panel before and at the opening.
   * @param {string} heading @param {any} count @param {number} rest of the dashes @param {string} help @param {any[]} items
   */
  function panel(heading, count, rest, help, items) {
    const shown = section(
      "opens",
      heading,
      [
        count,
        h("div", { class: "stack" }, dashes({ class: "minute" }, MINUTE, "rest", 0, rest), h("p", { class: "soft" }, help)),
        items.length > 0 && h("ul", { class: "ready" }, items),
      ],
      { kind: "opening" },
    );
    shown.style.setProperty("--height", `${panelHeight}px`);
    return shown;
  }

  /** Show how many places are left, at first at the same height. */
  function openPanel() {
    panelHeight ||= document.querySelector(".opening")?.clientHeight ?? 0;
    const all = (live.items ?? []).reduce((sum, slot) => sum + slot.capacity, 0);
    const free = (live.items ?? []).reduce((sum, slot) => sum + freePlaces(slot), 0);
    const own = (live.items ?? []).filter((slot) => slot.myBooking).map((slot) => h(
      "li",
      { "data-key": slot.id },
      icon("tick"),
      h("span", null, t("open.isYours", { title: slot.title })),
    ));
    if (isSmall) return section(
      "opens",
      [t("open.now"), " · ", t("state.free", { free: number(free), all: number(all), count: free })],
      [own.length > 0 && h("ul", { class: "ready" }, own)],
      { kind: "opening small" },
    );
    return panel(
      t("open.now"),
      h("p", { class: "count" }, h("span", null, number(free))),
      Math.ceil((MINUTE * free) / all),
      t("open.ofFree", { count: all }),
      own,
    );
  }

  function filterRow() {
    const chip = (/** @type {"free" | "forMe"} */ name) => checkbox(
      "chip",
      label(`filter.${name}`),
      { checked: filters[name] },
      (isChecked) => (filters[name] = isChecked),
    );
    return h(
      "div",
      { class: "filters", "data-key": "filters" },
      searchField((text) => (filters.text = text)),
      h("fieldset", { class: "chips" }, h("legend", { class: "vh" }, t("filter.legend")), chip("free"), me && chip("forMe")),
      // Before the opening it is there as well: nothing moves under a thumb that books.
      me && (whom.several || campaign.admission === "ANY") && button(
        "second",
        t("several.choose"),
        chooseSeveral,
        { "aria-pressed": String(Boolean(whom.several)), disabled: Date.parse(campaign.opensAt) > now() },
      ),
    );
  }

  function severalBar() {
    if (!whom.several && !deciding.has(SEVERAL) && !refused.has(SEVERAL)) return null;
    shows.load();
    return shows.bar?.(live.items ?? []);
  }

  function chooseSeveral() {
    whom.several = whom.several ? null : new Set();
    whom.openAt = "";
    refused.delete(SEVERAL);
    redraw();
  }

  /** @param {any} slot */
  function isShown(slot) {
    const isOwn = [slot, ...slot.familyPlaces ?? []].some((each) => each.myBooking || each.myWaitlistEntry || each.cancelledForMe) || deciding.has(slot.id);
    if (filters.text && !`${slot.title} ${slot.number ?? ""} ${slot.location ?? ""}`.toLocaleLowerCase().includes(filters.text)) return false;
    if (isOwn) return true;
    if (filters.forMe && !isForMe(campaign, slot)) return false;
    const refusal = !slot.familyPlaces && slot.myEligibility?.refusal;
    if (filters.forMe && refusal && !["NOT_YET_OPEN", "SLOT_FULL", "TIME_CONFLICT"].includes(refusal.code)) return false;
    return !filters.free || freePlaces(slot) > 0;
  }

  /** @param {number} opensAt */
  function slotLists(opensAt) {
    if (!live.items) return live.error ? failure(live.error, () => live.load()) : bones(6);
    const days = [...byDay(live.items)].map(([key, all]) => ({ key, slots: all.filter(isShown) })).filter((day) => day.slots.length);
    if (!days.length) return notice("", "list", live.items.length ? t("empty.filter") : t("empty.campaign"));
    const booked = live.items.filter((slot) => slot.myBooking?.status === "CONFIRMED");
    const context = {
      own: booked.length === 1 ? booked[0] : null,
      opensAt,
      isOld: live.state === "old" && live.readAt > 0 && Date.now() - live.readAt > MINUTE * 1000,
      readAt: live.readAt,
      isForOthers: !isForMe(campaign),
      isByLot: isByLot(),
      several: whom.several,
    };
    const starred = stars();
    const first = (opensAt > now() && !isByLot()) || wasThere ? live.items.filter((slot) => starred.has(slot.id) && isShown(slot)) : [];
    return h(
      "section",
      { class: "stack", "aria-label": campaign.name },
      first.length > 0 && [
        h("h2", { class: "day", "data-key": "stars" }, t("open.starred")),
        list("ol", { class: "slots", "data-key": "starred" }, first.map((slot) => slotRow(slot, { ...context, isOfAnyDay: true }))),
      ],
      days.flatMap((day) => [
        h("h2", { class: "day", "data-key": `day ${day.key}` }, dayOf(day.slots[0].startTime, day.slots[0].timeZone)),
        list("ol", { class: "slots", "data-key": day.key }, day.slots.map((slot) => slotRow(slot, context))),
      ]),
    );
  }

  return {
    title: () => campaign?.name ?? t("tab.courses"),
    render,
    leave() {
      live.leave();
      endChanges();
      stopReading();
      stopListening();
      stopWatching();
      clearInterval(timer);
      clearTimeout(instant);
      clearTimeout(again);
      byLot?.stop();
    },
  };
}
