// @ts-check
/** Who has a place in a course and who waits, and what an organizer does for them. */
import { newKey } from "../../../client.js";
import { h } from "../../../kernel.js";
import { bones, button, icon, section, whose } from "../../../parts.js";
import { groupsOf } from "../../../slotstate.js";
import { readAll } from "../../../store.js";
import { t, timeOf } from "../../../text.js";
import { focusAfter } from "../forms/actions.js";
import { whenOf } from "../forms/localtime.js";
import { byListName, listName, toggleButton, userLink, withCount } from "../parts.js";
import { Places } from "./places.js";
import { userPicker } from "../userpicker.js";

/** @param {string} slotId @param {() => any} reload @param {boolean} [isLed] shown to a leader, who only books some people */
export function roster(slotId, reload, isLed = false) {
  const places = new Places(reload);
  const { actions } = places;
  /** @type {any[] | null} */
  let bookings = null;
  /** @type {any[]} */
  let waiting = [];
  /** @type {any} */
  let slot = null;
  let isAdding = false;
  const picker = userPicker(userActions, isLed ? slotId : "");

  /** @param {any} current the slot */
  async function load(current) {
    slot = current;
    const found = [await readAll("roster", { slot: slotId }, "slotRoster"), await readAll("slotWaitlist", { slot: slotId }, "slotWaitlist")];
    [bookings, waiting] = found.map((each) => (each ?? []).map((place) => ({ ...place, slot })));
  }

  /** @param {string} key @param {string} name @param {any} variables @param {string} said */
  async function change(key, name, variables, said) {
    if (!(await actions.run(key, name, variables, said))) return;
    await reload();
    focusAfter(isAdding ? "user-search" : "main");
  }

  /** @param {any} user */
  function userActions(user) {
    const name = whose(user.name);
    const key = `user ${user.id}`;
    const has = (bookings ?? []).some((booking) => booking.user?.id === user.id);
    if (has) return [h("span", { class: "tag yours" }, icon("tick"), t("roster.has"))];
    if (waiting.some((entry) => entry.user?.id === user.id)) return [h("span", { class: "tag wait" }, t("roster.waits"))];
    if (user.banned) return [h("span", { class: "tag stop" }, t("people.banned"))];
    const input = { slotId, userId: user.id, idempotencyKey: newKey(), waitMs: 5000 };
    return [
      h("div", { class: "row" }, slot.remaining > 0
        ? [actions.button(key, "second", [t("action.book"), name], () => change(key, "bookSlot", { input }, t("roster.booked", { name: user.name }))),
            !isLed && actions.button(
              `hold ${user.id}`,
              "plain",
              [t("roster.hold"), name.cloneNode(true)],
              () => change(`hold ${user.id}`, "bookSlot", { input: { ...input, hold: true } }, t("roster.booked", { name: user.name })),
            )]
        : !isLed && actions.button(
          key,
          "second",
          [t("action.join"), name],
          () => change(key, "joinWaitlist", { slotId, userId: user.id }, t("roster.waits")),
        )),
      actions.problem(key),
      actions.problem(`hold ${user.id}`),
    ];
  }

  /** Return the person of a booking or an entry, for organizers with a link. @param {any} place */
  function nameOf({ user }) {
    const name = user && h("strong", null, listName(user));
    return isLed ? name : user && userLink(user, name);
  }

  /** @param {any} booking */
  function bookingRow(booking) {
    const { madeBy, madeAs } = booking;
    const by = madeBy && madeBy.id !== booking.user?.id && t("roster.by", { name: madeBy.name });
    const notes = [
      booking.user?.email ?? booking.user?.username,
      ...(booking.user?.groups ?? []),
      madeAs === "DRAW" ? t("place.drawn") : by,
      booking.waitedSince && t("roster.fromList"),
      ...booking.overriddenRefusals.map((/** @type {string} */ each) => t(`passed.${each}`, {}, each)),
    ];
    return h(
      "li",
      { "data-key": booking.id },
      h("p", null, nameOf(booking), h("br"), h("span", { class: "soft" }, notes.filter(Boolean).join(" · "))),
      slot.status !== "CANCELLED" && (places.note(booking) ?? [
        status(booking),
        (!isLed || madeAs === "LEADER") && [places.buttons(booking, !isLed), places.mover(booking)],
      ]),
    );
  }

  /** @param {any} booking */
  function status(booking) {
    if (booking.status === "HELD") return h("span", { class: "tag wait" }, icon("clock"), t("state.held", { time: timeOf(booking.heldUntil, slot.timeZone) }));
    if (booking.attendance === "CHECKED_IN") return h("span", { class: "tag yours" }, icon("tick"), t("roster.here"));
    if (booking.attendance === "NO_SHOW") return h("span", { class: "tag stop" }, icon("warning"), t("roster.absent"));
    return null; // the normal is quiet
  }

  /** @param {any} entry */
  function waitingRow(entry) {
    const notes = [t("roster.since", { time: whenOf(entry.since, slot.timeZone) }), entry.waitlistedBy && t("roster.by", { name: entry.waitlistedBy.name })];
    const note = places.note(entry);
    return h(
      "li",
      { "data-key": entry.id },
      h("p", null, !note && `${entry.position}. `, nameOf(entry), h("br"), h("span", { class: "soft" }, notes.filter(Boolean).join(" · "))),
      note ?? (!isLed && places.waitingButton(entry)),
    );
  }

  function toggleAdding() {
    isAdding = !isAdding;
    picker.clear();
    if (isAdding) requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("user-search")?.focus()));
  }

  /** @param {any} current the slot */
  function render(current) {
    slot = current;
    const order = places.rows(bookings ?? []).sort(byListName);
    const groups = slot.campaign?.leaderGroups ?? [];
    const canAdd = slot.status === "PUBLISHED" && (!isLed || (groups.length > 0 && (isAdding || slot.remaining > 0)));
    const line = places.rows(waiting, true).sort((/** @type {any} */ a, /** @type {any} */ b) => a.position - b.position);
    return h(
      "div",
      { class: "stack loose", "data-key": "people" },
      section("roster", withCount(t(slot.status === "CANCELLED" ? "roster.ended" : "roster.title"), bookings && String(bookings.length)), [
        isAdding && canAdd && isLed && h("p", { class: "soft" }, t("state.onlyFor", { groups: groupsOf({ onlyForGroups: groups }) })),
        isAdding && canAdd && picker.render(),
        !bookings ? bones(4) : order.length ? h("ul", { class: "frame list" }, order.map(bookingRow)) : h("p", { class: "soft" }, t("roster.empty")),
      ], { actions: canAdd && toggleButton(t("roster.add"), isAdding, toggleAdding) }),
      line.length > 0 && section(
        "waiting",
        withCount(t("roster.waiting"), String(waiting.length)),
        [h("ol", { class: "frame list" }, line.map(waitingRow))],
      ),
    );
  }

  return { load, render };
}
