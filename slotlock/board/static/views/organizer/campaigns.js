// @ts-check
/** The campaigns of an organizer: their state and counts, a new one, and a copy of one. */
import { site } from "../../page.js";
import { now } from "../../clock.js";
import { me, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, control, failure, icon, notice, whose } from "../../parts.js";
import { leads } from "../../people.js";
import { LiveCampaigns } from "../../store.js";
import { deviceZone, schoolZone, t, zoneOf } from "../../text.js";
import { campaignFields, campaignForm } from "./forms/campaignform.js";
import { openHolidays } from "./forms/holidays.js";
import { whenOf } from "./forms/localtime.js";
import { openPeriods } from "./forms/periods.js";
import { firstSteps } from "./firststeps.js";
import { openResources } from "./resourcepanel.js";

/** The pages below this one by the rest of their address. @type {Record<string, () => any>} */
const PARTS = { new: openNewCampaign, rooms: openResources, holidays: openHolidays, periods: openPeriods };

/** @param {string} part "" or one of PARTS */
export function openOrganizer(part) {
  if (Object.hasOwn(PARTS, part)) return PARTS[part]();
  const live = new LiveCampaigns(count);
  let isLeft = false;
  /** Statistics by campaign. @type {Map<string, any>} */
  const counts = new Map();
  const steps = firstSteps(() => live.items, (id) => Boolean(counts.get(id)?.slotCount || counts.get(id)?.drafts));

  /** Count one campaign after the other, each once: statistics are costly. */
  async function count() {
    for (const { id } of live.items ?? []) {
      if (isLeft || counts.has(id)) continue;
      counts.set(id, null);
      const data = await run("campaignCounts", { id }).catch(() => null);
      if (data?.campaignStatistics)
        counts.set(id, { ...data.campaignStatistics, drafts: data.slots.totalCount ?? 0, first: [...data.zones.nodes, ...data.slots.nodes][0] });
      redraw();
    }
  }

  /** @param {any} campaign */
  function entry(campaign) {
    const name = whose(campaign.name);
    // As on the page of the campaign.
    const zone = zoneOf(counts.get(campaign.id)?.first);
    return h(
      "li",
      { "data-key": campaign.id },
      h("div", { class: "stack tight grow" },
        h("h2", { class: "named" }, h("a", { href: `#/plan/${campaign.id}` }, campaign.name), " ", stateTag(campaign)),
        h(
          "p",
          { class: "soft" },
          timesOf(campaign, zone),
          zone !== deviceZone && ` · ${zone.replace(/_/g, " ")}`,
        ),
        counted(counts.get(campaign.id))),
      h("div", { class: "row" },
        control("a", { class: "btn second", href: `#/monitor/${campaign.id}` }, [t("orga.monitor"), name.cloneNode(true)]),
        h("a", { class: "btn plain", href: `#/plan/${campaign.id}/copy` }, t("feed.copy"), name)),
    );
  }

  return {
    title: () => t("orga.title"),
    width: /** @type {"wide"} */ ("wide"),
    render() {
      return [
        h("div", { class: "row" },
          h("h1", null, t("orga.title")),
          h("p", { class: "row push even" }, h("a", { class: "btn", href: "#/organizer/new" }, t("orga.create")))),
        h("nav", { class: "row even", "aria-label": t("orga.more") },
          h("a", { class: "btn second", href: "#/people" }, icon("people"), t("people.title")),
          h("a", { class: "btn second", href: "#/door" }, icon("code"), t("door.title")),
          h("a", { class: "btn second", href: "#/organizer/rooms" }, icon("school"), t("slotForm.resources")),
          h("a", { class: "btn second", href: "#/organizer/holidays" }, icon("week"), t("holidays.title")),
          leads() && h("a", { class: "btn second", href: "#/led" }, icon("list"), t("tab.led")),
          h("a", { class: "btn second", href: "#/organizer/periods" }, icon("clock"), t("periods.title")),
          me?.role === "ADMIN" && h("a", { class: "btn second", href: "#/school" }, icon("gear"), t("school.title"))),
        steps.render(),
        live.error && !live.items
          ? failure(live.error, () => live.load())
          : !live.items
            ? bones(3)
            : live.items.length
              ? h("ul", { class: "frame list" }, [...live.items].sort((a, b) => rank(a) - rank(b) || b.opensAt.localeCompare(a.opensAt)).map(entry))
              : notice("", "list", t("orga.empty")),
        h("details", { class: "more", "data-key": "technician" },
          h("summary", null, t("orga.technician")),
          h("nav", { class: "row even", "aria-label": t("orga.technician") },
            site.sendsMail && h("a", { class: "btn second", href: "#/mail" }, icon("list"), t("mail.title")),
            h("a", { class: "btn second", href: "#/webhooks" }, icon("gear"), t("webhooks.title")))),
      ];
    },
    leave() {
      isLeft = true;
      live.leave();
    },
  };
}

function openNewCampaign() {
  const form = campaignForm(null, schoolZone).keep();
  form.focusFirst();

  async function submit() {
    const created = await form.send("createCampaign", () => ({ input: { ...form.input(), idempotencyKey: form.key } }));
    if (!created) return;
    form.forget();
    location.replace(`#/plan/${created.id}`);
  }

  const actions = { level: "h1", submit: t("orga.createSubmit"), onsubmit: submit, oncancel: () => location.replace("#/organizer") };
  return {
    title: () => t("orga.create"),
    width: /** @type {"wide"} */ ("wide"),
    render: () => [h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))), form.render(t("orga.create"), campaignFields(form), actions)],
  };
}

/** Return the tag that says whether a campaign is a draft, open or over. @param {any} campaign */
export function stateTag(campaign) {
  if (!campaign.published) return h("span", { class: "tag wait" }, t("orga.draft"));
  if (Date.parse(campaign.closesAt) <= now()) return h("span", { class: "tag over" }, t("open.over"));
  if (campaign.admission === "DRAW") return h("span", { class: "tag wait" }, t("draw.title"));
  if (Date.parse(campaign.opensAt) > now()) return h("span", { class: "tag" }, icon("clock"), t("orga.upcoming"));
  return h("span", { class: "tag yours" }, t("open.now"));
}

/** @param {any} count */
function counted(count) {
  if (!count) return h("p", { class: "soft" }, " ");
  const parts = [
    (count.slotCount > 0 || !count.drafts) && t("orga.courses", { count: count.slotCount }),
    count.drafts > 0 && t("orga.drafts", { count: count.drafts }),
    count.places > 0 && t("orga.taken", { taken: count.taken, count: count.places }),
    count.waiting > 0 && t("orga.waiting", { count: count.waiting }),
  ];
  return h("p", null, parts.filter(Boolean).join(" · "));
}

/** Return the order: what is open, drafts and what opens, then what is over. @param {any} campaign */
function rank(campaign) {
  if (Date.parse(campaign.closesAt) < now()) return 2;
  return campaign.published && Date.parse(campaign.opensAt) <= now() ? 0 : 1;
}

/** Return when a campaign opens and closes, or that it is open. @param {any} campaign @param {string} zone */
export function timesOf({ opensAt, closesAt, admission }, zone) {
  const isOver = Date.parse(closesAt) <= now();
  const isOpen = Date.parse(opensAt) <= now() && !isOver;
  const key = admission === "DRAW" && !isOver ? "orga.timesDraw" : isOpen ? "orga.timesOpen" : "orga.times";
  return t(key, { opens: whenOf(opensAt, zone), closes: whenOf(closesAt, zone) });
}
