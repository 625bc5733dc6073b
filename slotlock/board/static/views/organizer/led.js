// @ts-check
/** The courses that a person leads, such as a teacher: the list, the door, a mail to all and files of each. */
import { run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, failure, notice, section, whose } from "../../parts.js";
import { whereOf } from "../../rows.js";
import { readAll, readerOf } from "../../store.js";
import { t, timeOf } from "../../text.js";
import { roster } from "./course/roster.js";
import { today } from "./door/choice.js";
import { Actions } from "./forms/actions.js";
import { announcer } from "./forms/announce.js";
import { exportButtons } from "./forms/exports.js";
import { whenOf } from "./forms/localtime.js";
import { toggleButton } from "./parts.js";

const READ_LED_AGAIN_MS = 60_000;

export function openLed() {
  /** @type {any[] | null} */
  let slots = null;
  /** The course whose list is open. */
  let listed = "";
  /** What a card has by its course. @type {Map<string, any>} */
  const cards = new Map();
  const load = readerOf(async () => {
    slots = (await readAll("led", { from: today().from }, "slots")) ?? [];
    const slot = slots.find((each) => each.id === listed);
    if (slot) await cardOf(slot).people.load(slot);
  });
  const timer = setInterval(load, READ_LED_AGAIN_MS);
  load();

  /** @param {any} slot */
  function cardOf({ id }) {
    const card = cards.get(id) ?? { actions: new Actions(), people: roster(id, load, true), letter: announcer({ slotId: id }, true) };
    cards.set(id, card);
    return card;
  }

  /** @param {any} slot */
  function toggle(slot) {
    listed = listed === slot.id ? "" : slot.id;
    load();
    redraw();
  }

  /** @param {any} slot */
  function entry(slot) {
    const { actions, people, letter } = cardOf(slot);
    const { startTime, endTime } = slot.meetings[0] ?? slot;
    const name = whose(slot.title);
    return h(
      "li",
      { "data-key": slot.id },
      h("div", { class: "stack tight grow" },
        h("h3", { class: "named" }, slot.title),
        h("p", { class: "soft" }, [`${whenOf(startTime, slot.timeZone)}–${timeOf(endTime, slot.timeZone)}`, whereOf(slot)].filter(Boolean).join(" · ")),
        h(
          "p",
          null,
          t("orga.taken", { taken: slot.capacity - slot.remaining, count: slot.capacity }),
          slot.waitlistLength > 0 && t("state.waitingCount", { count: slot.waitlistLength }),
        )),
      h("div", { class: "row even" },
        h("a", { class: "btn", href: `#/door/${slot.id}` }, t("door.title"), name),
        toggleButton([t("door.list"), name.cloneNode(true)], listed === slot.id, () => toggle(slot)),
        letter.button(t("led.write"), slot.title)),
      exportButtons(actions, slot.id, slot.title, ["XLSX", "PDF"]),
      h("div", { class: "whole stack" }, letter.render(), listed === slot.id && people.render(slot)),
    );
  }

  function render() {
    const { until } = today();
    const next = (/** @type {any} */ slot) => slot.meetings[0]?.startTime;
    const order = [...slots ?? []].sort((a, b) => (next(a) ?? a.startTime).localeCompare(next(b) ?? b.startTime));
    const isToday = (/** @type {any} */ slot) => Date.parse(next(slot)) < Date.parse(until);
    const parts = {
      today: order.filter(isToday),
      coming: order.filter((slot) => next(slot) && !isToday(slot)),
      over: order.filter((slot) => !next(slot)).reverse(),
    };
    return [
      h("h1", null, t("tab.led")),
      load.error && failure(load.error, load),
      slots
        ? Object.entries(parts).map(([part, found]) => found.length > 0
          && section(part, t(`led.${part}`), h("ul", { class: "frame list" }, found.map(entry))))
        : !load.error && bones(3),
      slots?.length === 0 && notice("", "list", t("led.none")),
    ];
  }

  return { title: () => t("tab.led"), width: /** @type {"wide"} */ ("wide"), render, leave: () => clearInterval(timer) };
}
