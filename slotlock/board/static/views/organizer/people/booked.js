// @ts-check
/** What a person has booked, waits and wishes for, and got by mail, for whoever is asked on the telephone. */
import { site } from "../../../page.js";
import { now } from "../../../clock.js";
import { codeOf, run } from "../../../client.js";
import { h, redraw } from "../../../kernel.js";
import { bones, failure, icon, notice, section } from "../../../parts.js";
import { oneAtATime, readAll } from "../../../store.js";
import { deviceZone, shortOf, t } from "../../../text.js";
import { PLACE_ACTIONS, historyOf } from "../course/history.js";
import { Places } from "../course/places.js";
import { whenOf } from "../forms/localtime.js";
import { about, choice, toggleButton, withCount } from "../parts.js";
import { pages } from "../pages.js";
import { STATE_TAGS, mailNote } from "./progress.js";

const PAST_PAGE = 10;
const MAILS = 5;
const NEXT = { includePast: false };

/** @param {any} user whom the page is about @param {string} campaignId whose courses to choose from at once, or "" */
export function booked(user, campaignId) {
  /** What is not over. @type {any[] | null} */
  let bookings = null;
  /** @type {any[]} */
  let waiting = [];
  /** @type {any[]} */
  let wishes = [];
  /** @type {any[]} */
  let mails = [];
  /** Where a place can be given. @type {any[] | null} */
  let campaigns = null;
  let campaign = campaignId;
  let error = "";
  const places = new Places(oneAtATime(readOnce));
  const log = historyOf({ userId: user.id, actions: PLACE_ACTIONS }, true);
  const past = pages(async (after) => {
    const filter = { endsBefore: new Date(now()).toISOString() };
    return (await run("userBookings", { user: user.id, filter, first: PAST_PAGE, after })).userBookings;
  });

  async function readOnce() {
    const variables = { user: user.id, filter: NEXT };
    try {
      const [found, entries, { userWishes }, sent] = await Promise.all([
        readAll("userBookings", variables, "userBookings"),
        readAll("userWaitlistEntries", variables, "userWaitlistEntries"),
        run("userWishes", { user: user.id }),
        site.sendsMail && run("outbox", { filter: { channel: "MAIL", userId: user.id }, first: MAILS }),
      ]);
      [bookings, waiting] = [found, entries].map((each) => (each ?? []).map((place) => ({ ...place, user })));
      wishes = userWishes;
      mails = sent ? sent.outbox.nodes : [];
      error = "";
      await log.load();
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  places.reload();
  if (campaignId) openGiver();

  /** Let somebody choose a course, of the campaign that closes next if none is chosen. */
  async function openGiver() {
    try {
      campaigns ??= ((await readAll("campaigns", {}, "campaigns")) ?? []).filter((each) => each.id === campaign || Date.parse(each.closesAt) > now());
      campaign ||= campaigns[0]?.id ?? "";
      if (campaign) places.toggle(user.id, campaign);
      else places.open = user.id;
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }

  function giver() {
    if (places.open !== user.id) return null;
    if (!campaign) return h("p", { class: "soft" }, t("place.noCampaign"));
    const options = /** @type {Array<[string, string]>} */ ((campaigns ?? []).map((each) => [each.id, each.name]));
    return h(
      "div",
      { class: "sheet stack", "data-key": "giver" },
      options.length > 1 && choice("campaign", t("place.campaign"), options, campaign, (value) => {
        campaign = value;
        places.target = "";
        places.read(value);
      }),
      places.giver(user, campaign),
    );
  }

  /** Return the link to a course, and what is known of it. @param {any} slot @returns {[any, any[]]} */
  function courseOf(slot) {
    const time = whenOf(slot.startTime, slot.timeZone);
    const title = slot.status === "CANCELLED" ? h("s", null, slot.title) : h("strong", null, slot.title);
    return [h("a", { href: `#/course/${slot.id}` }, title), [time, slot.campaign?.name]];
  }

  /** @param {any} booking */
  function row(booking) {
    const { slot, madeBy, madeAs } = booking;
    const [link, facts] = courseOf(slot);
    const notes = [
      ...facts,
      madeAs === "DRAW" ? t("place.drawn") : madeBy && madeBy.id !== user.id && t("roster.by", { name: madeBy.name }),
      booking.waitedSince && t("roster.fromList"),
      ...booking.overriddenRefusals.map((/** @type {string} */ each) => t(`passed.${each}`, {}, each)),
    ];
    const isOff = slot.status === "CANCELLED";
    const buttons = places.buttons(booking, !user.banned);
    return h(
      "li",
      { "data-key": booking.id },
      about(link, notes),
      isOff ? h("span", { class: "tag over" }, t("state.cancelled")) : places.note(booking) ?? [tag(booking), buttons, places.mover(booking)],
    );
  }

  /** @param {any} booking */
  function tag({ status, heldUntil, attendance, slot }) {
    if (status === "HELD") return h("span", { class: "tag wait" }, icon("clock"), t("state.held", { time: shortOf(heldUntil, slot.timeZone) }));
    if (attendance === "CHECKED_IN") return h("span", { class: "tag yours" }, icon("tick"), t("roster.here"));
    return attendance === "NO_SHOW" && h("span", { class: "tag stop" }, icon("warning"), t("roster.absent"));
  }

  /** @param {any} entry */
  function waitingRow(entry) {
    const [link, facts] = courseOf(entry.slot);
    const note = places.note(entry);
    const since = t("roster.since", { time: whenOf(entry.since, entry.slot.timeZone) });
    const by = entry.waitlistedBy && t("roster.by", { name: entry.waitlistedBy.name });
    return h(
      "li",
      { "data-key": entry.id },
      about([!note && `${entry.position}. `, link], [...facts, since, by]),
      note ?? places.waitingButton(entry),
    );
  }

  /** @param {any} wished in one draw */
  function wishRow({ draw, ranked, userIds }) {
    const results = new Map((draw.result?.wishes ?? []).map((/** @type {any} */ each) => [each.slotId, each.result]));
    return h(
      "li",
      { "data-key": draw.recordId },
      about(h("strong", null, draw.campaign?.name ?? ""), [t(`draw.state.${draw.state}`), userIds.length > 1 && t("place.inTeam")]),
      h("ol", { class: "grow" }, ranked.map((/** @type {any} */ { slotId, slot }, /** @type {number} */ index) => {
        const result = results.get(slotId);
        const said = result && t(`place.wish.${result}`, {}, result);
        return h("li", null, `${index + 1}. `, slot ? h("a", { href: `#/course/${slot.id}` }, slot.title) : t("wishes.gone"), said && `: ${said}`);
      })),
    );
  }

  /** @param {any} mail */
  function mailRow(mail) {
    const at = mail.doneAt ?? mail.at;
    const reader = mail.user?.id !== user.id && mail.user?.name; // a guardian
    return h(
      "li",
      { "data-key": mail.id },
      about(t(`mail.kind.${mail.kind}`, {}, mail.kind), [reader, mail.slot?.title, whenOf(at, deviceZone), mailNote(mail)]),
      h("span", { class: `tag ${STATE_TAGS[mail.state]}` }, t(`mail.state.${mail.state}`)),
    );
  }

  function render() {
    if (error && !bookings) return failure(error, places.reload);
    if (!bookings) return bones(3);
    const rows = places.rows(bookings).sort((a, b) => a.slot.startTime.localeCompare(b.slot.startTime));
    const line = places.rows(waiting, true);
    return h(
      "div",
      { class: "stack loose", "data-key": "booked" },
      error && failure(error, places.reload),
      section("places", withCount(t("slot.places"), String(bookings.filter((/** @type {any} */ { slot }) => slot.status !== "CANCELLED").length)), [
        giver(),
        rows.length ? h("ul", { class: "frame list" }, rows.map(row)) : h("p", { class: "soft" }, t("place.none")),
      ], { actions: !user.banned && toggleButton(t("place.give"), places.open === user.id, openGiver) }),
      line.length > 0 && section("waiting", withCount(t("roster.waiting"), String(waiting.length)), [h("ul", { class: "frame list" }, line.map(waitingRow))]),
      wishes.length > 0 && section("wishes", t("wishes.title"), [h("ul", { class: "frame list" }, wishes.map(wishRow))]),
      (past.nodes() ?? []).length > 0 && section("past", t("state.over"), [past.render((booking) => ({
        key: booking.id,
        signature: booking.attendance,
        build: () => h("li", { "data-key": booking.id }, about(...courseOf(booking.slot)), tag(booking)),
      }), null)]),
      site.sendsMail && section("mails", t("mail.title"), [
        mails.length ? h("ul", { class: "frame list" }, mails.map(mailRow)) : h("p", { class: "soft" }, t("mail.none")),
        h("p", null, h("a", { href: `#/mail/${user.id}` }, t("people.mails"))),
      ]),
      log.render(),
    );
  }

  return { render, leave: past.leave, next: () => bookings ?? [] };
}
