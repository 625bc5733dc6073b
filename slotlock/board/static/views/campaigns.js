// @ts-check
/** What is open and what opens when: the first page. */
import { watchMine } from "../bookings.js";
import { now } from "../clock.js";
import { me, onSession, run } from "../client.js";
import { h, redraw } from "../kernel.js";
import { bones, failure, freshness, icon, notice, zoneNote } from "../parts.js";
import { readPeople, shows } from "../people.js";
import { audienceOf, drawOf, isForMe, opening, opensText } from "../slotstate.js";
import { LiveCampaigns } from "../store.js";
import { countdown, hasZone, learnZone, schoolZone, t } from "../text.js";

/** Somebody may have been invited to a team meanwhile. */
const YOUNG_INVITATIONS_MS = 20_000;

export function openCampaigns() {
  const live = new LiveCampaigns();
  const stopSession = onSession(() => live.load());
  const stopWatching = watchMine(() => {}, () => null);
  /** The draws of campaigns by their ids and admission, which a result changes. @type {Map<string, ReturnType<typeof drawOf>>} */
  const draws = new Map();
  readPeople(YOUNG_INVITATIONS_MS);
  const timer = setInterval(redraw, 1000);
  if (!hasZone()) run("nextSlot").then(({ slots }) => learnZone(slots.nodes[0]), () => null);

  /** @param {any} campaign */
  function lotOf({ id, admission }) {
    const known = draws.get(id + admission) ?? drawOf(id);
    draws.set(id + admission, known);
    return known;
  }

  /** @param {any} campaign */
  function entry(campaign) {
    const opensAt = Date.parse(campaign.opensAt);
    const closesAt = Date.parse(campaign.closesAt);
    const leftMs = opensAt - now();
    let tag = leftMs < 3_600_000 && h("span", { class: "tag" }, icon("clock"), t("state.in", { time: countdown(leftMs) }));
    let when = opensText(opensAt, schoolZone);
    if (leftMs <= 0) {
      const isOpen = closesAt > now();
      tag = h("span", { class: isOpen ? "tag yours" : "tag over" }, t(isOpen ? "open.now" : "open.over"));
      when = isOpen ? t("open.until", { time: opening(closesAt, schoolZone) }) : "";
    }
    if (campaign.admission === "DRAW" || (campaign.draw && closesAt > now())) {
      [when, tag] = lotOf(campaign).entry(campaign, leftMs > 0 ? opening(opensAt, schoolZone) : "", [when, tag]);
    }
    const isOwn = me?.role === "MEMBER" && isForMe(campaign); // then its groups are no news
    const groups = isOwn ? "" : audienceOf(campaign);
    return h(
      "li",
      { "data-key": campaign.id },
      h(
        "p",
        null,
        h("a", { href: `#/campaign/${campaign.id}` }, h("strong", null, campaign.name)),
        h("br"),
        h("span", { class: "soft" }, [groups, when].filter(Boolean).join(" · ")),
      ),
      tag,
    );
  }

  return {
    title: () => t("tab.courses"),
    render() {
      const order = (live.items ?? []).filter((each) => each.published).sort((a, b) => rank(a) - rank(b) || a.opensAt.localeCompare(b.opensAt));
      return [
        h("div", { class: "top" }, h("h1", null, t("campaigns.title")), freshness(live.state)),
        !me && notice("", "person", t("campaigns.signIn"), h("a", { class: "btn", href: "#/signin" }, t("tab.signin"))),
        shows.invited?.(),
        live.error && !live.items
          ? failure(live.error, () => live.load())
          : live.items
            ? (order.length
              ? [h("ul", { class: "frame list" }, order.map(entry)), zoneNote(schoolZone)]
              : notice("", "list", t("empty.campaigns")))
            : bones(3),
      ];
    },
    leave() {
      live.leave();
      stopSession();
      stopWatching();
      clearInterval(timer);
      for (const draw of draws.values()) draw.stop();
    },
  };
}

/** Return the order of a campaign: open ones, those that open, then those that are over. @param {any} campaign */
function rank(campaign) {
  if (Date.parse(campaign.closesAt) < now()) return 2;
  return Date.parse(campaign.opensAt) > now() && campaign.admission !== "DRAW" ? 1 : 0;
}
