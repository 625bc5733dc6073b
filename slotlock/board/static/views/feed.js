// @ts-check
/** The calendar feed: an address by which a calendar app follows one's bookings. */
import { codeOf, run } from "../client.js";
import { h, redraw } from "../kernel.js";
import { askOnce, button, failure, field, icon, section } from "../parts.js";
import { dayOf, deviceZone, t } from "../text.js";

/** Return a button that opens a panel, and the panel. */
export function calendarFeed() {
  let isOpen = false;
  /** @type {any} null without a feed, undefined while unknown */
  let feed;
  let error = "";
  let isCopied = false;

  /** @param {string} name */
  async function request(name) {
    isCopied = false;
    error = "";
    try {
      const data = await run(name);
      feed = name === "revokeCalendarFeed" ? null : data[name];
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }

  function toggle() {
    isOpen = !isOpen;
    if (isOpen && feed === undefined) request("myCalendarFeed");
    redraw();
  }

  /** @param {string} address */
  async function copy(address) {
    await navigator.clipboard?.writeText(address).then(() => (isCopied = true), () => null);
    redraw();
  }

  function panel() {
    if (!isOpen) return null;
    const body = [];
    if (error) body.push(failure(error, () => request("myCalendarFeed")));
    else if (feed?.url) {
      const address = new URL(feed.url, location.origin).href;
      body.push(
        h("p", null, t("feed.help")),
        field("feed-address", t("feed.address"), { readonly: true, value: address, onfocus: (/** @type {any} */ event) => event.target.select() }),
        h(
          "div",
          { class: "row" },
          h("a", { class: "btn second", href: address.replace(/^https?:/, "webcal:") }, icon("week"), t("feed.open")),
          button("second", t(isCopied ? "feed.copied" : "feed.copy"), () => copy(address)),
        ),
        h("p", { class: "small soft" }, t("feed.once")),
      );
    } else if (feed) {
      body.push(
        h("p", null, t("feed.since", { date: dayOf(feed.createdAt, deviceZone) })),
        h(
          "div",
          { class: "row" },
          askOnce(
            "feed new",
            "second",
            { label: t("feed.again"), question: t("feed.againAsk"), yes: t("feed.again"), no: t("feed.keep") },
            () => request("createCalendarFeed"),
          ),
          askOnce(
            "feed end",
            "plain",
            { label: t("feed.end"), question: t("feed.endAsk"), yes: t("feed.end"), no: t("feed.keep") },
            () => request("revokeCalendarFeed"),
          ),
        ),
      );
    } else if (feed === null) {
      body.push(h("p", null, t("feed.none")), h("div", null, button("second", t("feed.create"), () => request("createCalendarFeed"))));
    }
    return section("feed", t("feed.title"), body, { kind: "sheet stack span" });
  }

  return { button: () => button("second", [icon("week"), t("feed.title")], toggle, { "aria-expanded": String(isOpen) }), panel };
}
