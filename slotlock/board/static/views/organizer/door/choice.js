// @ts-check
/** The courses of today, each with its door. */
import { now } from "../../../clock.js";
import { h, redraw } from "../../../kernel.js";
import { bones, failure, notice } from "../../../parts.js";
import { whereOf } from "../../../rows.js";
import { readAll, readerOf } from "../../../store.js";
import { dayOf, deviceZone, t, timeOf } from "../../../text.js";
import { about } from "../parts.js";

/** Return when today begins and ends on this device, by the server's clock. */
export function today() {
  const start = new Date(now());
  start.setHours(0, 0, 0, 0);
  const end = new Date(start);
  end.setDate(end.getDate() + 1);
  return { from: start.toISOString(), until: end.toISOString() };
}

export function openChoice() {
  /** @type {any[] | null} */
  let slots = null;

  const load = readerOf(async () => {
    slots = await readAll("doorSlots", today(), "slots");
  });
  load();

  /** @param {any} slot */
  function entry(slot) {
    const { startTime, endTime } = slot.meetings[0];
    const time = `${timeOf(startTime, slot.timeZone)}–${timeOf(endTime, slot.timeZone)}`;
    const count = slot.capacity - slot.remaining;
    return h(
      "li",
      { "data-key": slot.id },
      about(h("a", { href: `#/door/${slot.id}` }, h("strong", null, slot.title)), [time, whereOf(slot)]),
      h("span", { class: "soft" }, t("door.expected", { count })),
    );
  }

  return {
    title: () => t("door.title"),
    render() {
      const order = (slots ?? []).filter((slot) => slot.meetings.length).sort((a, b) => a.meetings[0].startTime.localeCompare(b.meetings[0].startTime));
      return [
        h("div", { class: "top" }, h("h1", null, t("door.title")), h("p", { class: "soft" }, dayOf(new Date(now()), deviceZone))),
        load.error && !slots
          ? failure(load.error, load)
          : slots
            ? (order.length
              ? h("ul", { class: "frame list" }, order.map(entry))
              : notice("", "list", t("door.none"), h("a", { class: "btn second", href: "#/organizer" }, t("tab.organizer"))))
            : bones(3),
      ];
    },
  };
}
