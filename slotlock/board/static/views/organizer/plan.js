// @ts-check
/** A campaign of an organizer: its settings, its courses, and what is missing before everybody sees it. */
import { go, say, site } from "../../page.js";
import { now } from "../../clock.js";
import { me, run } from "../../client.js";
import { h, list, redraw } from "../../kernel.js";
import { bones, button, failure, hidden, icon, section } from "../../parts.js";
import { whereOf } from "../../rows.js";
import { audienceOf, groupsOf } from "../../slotstate.js";
import { tab } from "../../storage.js";
import { readerOf } from "../../store.js";
import { commas, number, sentences, shortOf, shortWhenOf, t, zoneOf } from "../../text.js";
import { conflictsOf, datesNotice, readSlots } from "./course/series.js";
import { courseFile } from "./coursefile.js";
import { Actions, why } from "./forms/actions.js";
import { announcer } from "./forms/announce.js";
import { campaignFields, campaignForm } from "./forms/campaignform.js";
import { stateTag, timesOf } from "./campaigns.js";
import { copyForm, copyPanel } from "./forms/copy.js";
import { exportButtons } from "./forms/exports.js";
import { limitTexts } from "./forms/limits.js";
import { column, countCell, similarGroups, table, toggleButton, withCount, zoneNote } from "./parts.js";
import { courseCount, readChecks } from "./readiness.js";
import { addTyped } from "./forms/resources.js";
import { newSlot, slotFields, slotForm, weeklyRule } from "./forms/slotform.js";

/** How many reasons are shown of those why slots were not published or deleted. */
const MOST_TEXTS = 3;
const ICON_OF = { good: "tick", late: "clock", bad: "warning" };

/** The forms of a campaign by the end of their address, and their titles. @type {Record<string, string>} */
const FORMS = { new: "plan.add", settings: "plan.settings", copy: "feed.copy", file: "plan.file" };
/** What was just created, which the next page says. @type {any} */
let created = null;

/** @param {string} part the id, with "/settings", "/copy", or "/new" and perhaps a course that the new one is a copy of */
export function openPlan(part) {
  const [campaignId, panel = "", copiedId = ""] = part.split("/");
  const isForm = Object.hasOwn(FORMS, panel);
  const file = panel === "file" ? courseFile(campaignId, leave) : null;
  /** Where the values of the course before are kept, with which the next one begins. */
  const before = `slotlock.before ${me?.id} ${campaignId}`;
  /** @type {any} */
  let campaign = null;
  /** @type {any[] | null} */
  let slots = null;
  /** @type {import("./readiness.js").Check[] | null} */
  let checks = null;
  /** The form of the address. @type {any} */
  let form = null;
  let made = created;
  created = null;
  /** The slots that are selected, and the series whose dates are all shown. */
  const selected = new Set();
  const expanded = new Set();
  const load = readerOf(async () => {
    ({ campaign } = await run("plan", { id: campaignId }));
    redraw();
    if (!campaign) return "CAMPAIGN_NOT_FOUND";
    if (file) return;
    const found = (slots = await readSlots("planSlots", { campaign: campaignId }));
    for (const id of selected) if (!found.some((slot) => slot.id === id)) selected.delete(id);
    redraw();
    if (isForm) return void (form ??= await formOfAddress());
    checks = await readChecks(campaign, found.filter((slot) => slot.status !== "CANCELLED"), zone());
  });
  const actions = new Actions();
  const letter = announcer({ campaignId });
  const zone = () => zoneOf(slots?.[0]);

  load();

  /** Return the form of the address, with what was typed there before. */
  async function formOfAddress() {
    const original = copiedId ? (await run("course", { id: copiedId })).slot : null;
    const copied = original && { ...original, number: null };
    const opened = panel === "settings" ? campaignForm(campaign, zone())
      : panel === "copy" ? copyForm(campaign)
      : slotForm(copied, copied?.timeZone ?? zone(), copied ? null : tab.read(before, (values) => values));
    opened.focusFirst();
    return opened.keep();
  }

  /** Leave the form, to which nobody goes back. */
  const close = () => location.replace(`#/plan/${campaignId}`);

  /** Leave the page of a file, whose courses are imported. @param {string} text */
  function leave(text) {
    created = { skippedHolidays: [], conflicts: [], text };
    say(text);
    close();
  }

  async function saveSettings() {
    if (!(await form.send("updateCampaign", () => ({ input: { campaignId, ...form.input() } })))) return;
    form.forget();
    say(t("form.saved"));
    close();
  }

  /**
   * Create a slot or a series.
   * @param {"STRICT" | "SKIP_CONFLICTS"} onConflict for dates on which a room is taken @param {boolean} [isMore] whether another one follows
   */
  async function saveSlot(onConflict, isMore = false) {
    const isSeries = form.values.form === "series";
    const result = await form.send(isSeries ? "createSlotSeries" : "createSlot", async () => {
      await addTyped(form);
      const slot = newSlot(form, campaignId);
      if (!isSeries) return { input: { ...slot, idempotencyKey: form.key } };
      return { input: {
        slot,
        rrule: weeklyRule(form),
        holidays: form.dayList("holidays"),
        holidayListId: form.values.holidayListId || null,
        onConflict,
        idempotencyKey: `${form.key} ${onConflict}`,
      } };
    });
    if (!result) return;
    const title = form.text("title");
    form.forget();
    tab.set(before, JSON.stringify(form.values));
    made = created = { skippedHolidays: [], conflicts: [], ...result, title };
    say(t("plan.created", { title }));
    if (!isMore) return close();
    created = null;
    form = slotForm(null, form.zone, form.values).keep();
    redraw();
    form.focusFirst();
  }

  /**
   * Publish or delete slots one by one, as each may have its own reason not to; returns whether all of them were.
   * @param {string} key @param {string} name @param {any[]} chosen
   */
  async function each(key, name, chosen) {
    /** @type {string[]} */
    const texts = [];
    let left = chosen.length;
    made = null;
    for (const slot of chosen) {
      if (await actions.run(key, name, { id: slot.id })) {
        selected.delete(slot.id);
        left -= 1;
        continue;
      }
      const refusal = actions.problems.get(key);
      texts.push(slot.title + t("whose", { name: why(refusal) }));
      // The others would have no answer either.
      if (!refusal.__typename) break;
    }
    if (left) tell(key, sentences([...texts.slice(0, MOST_TEXTS), chosen.length > 1 && t("plan.left", { count: left, all: chosen.length })]));
    await load();
    return !left;
  }

  /** @param {string} key of what was clicked @param {string} text */
  function tell(key, text) {
    actions.problems.set(key, { text });
    say(text);
  }

  /** Publish all drafts, or none while the room of one is taken; returns whether all of them were. @param {string} key */
  async function publishDrafts(key) {
    const found = await actions.run(key, "campaignReadiness", { id: campaignId });
    if (!found) return false;
    const { resourceConflictCount: count } = found;
    if (!count) return each(key, "publishSlot", slots?.filter((slot) => slot.status === "DRAFT") ?? []);
    tell(key, t("plan.nothingPublished", { count }));
    await load();
    return false;
  }

  /** Publish the campaign with its drafts. */
  async function publish() {
    if (await publishDrafts("publish")) await publishOthers();
  }

  /** Publish the campaign, whose drafts stay hidden. */
  async function publishOthers() {
    made = null;
    if (await actions.run("publish", "publishCampaign", { id: campaignId }, t("plan.published"))) await load();
  }

  async function unpublish() {
    if (await actions.run("unpublish", "unpublishCampaign", { id: campaignId }, t("plan.unpublished"))) await load();
  }

  async function remove() {
    if (await actions.run("delete", "deleteCampaign", { id: campaignId }, t("plan.deleted"))) go("#/organizer");
  }

  function head() {
    const limits = [
      campaign.maxBookings && t("plan.atMost", { count: campaign.maxBookings }),
      campaign.forbidOverlap && t("plan.noOverlap"),
      campaign.admission === "QUEUE_ONLY" && t("state.inOrder"),
      ...limitTexts(campaign.groupLimits).map((text) => t("limits.course", { text })),
      audienceOf(campaign) && t("plan.for", { groups: audienceOf(campaign) }),
    ];
    const times = timesOf(campaign, zone());
    return [
      h(
        "div",
        { class: "row" },
        h("div", { class: "stack tight grow" },
          h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
          h("h1", null, campaign.name, " ", stateTag(campaign)),
          h("p", { class: "soft" }, [times, ...limits].filter(Boolean).join(" · ")),
          zoneNote(zone())),
        h("div", { class: "row push even" },
          h("a", { class: "btn second", href: `#/plan/${campaignId}/settings` }, t("plan.settings")),
          h("a", { class: "btn second", href: `#/draw/${campaign.id}` }, t("draw.title")),
          campaign.published
            ? h("a", { class: "btn second", href: `#/monitor/${campaign.id}` }, t("orga.monitor"))
            : slots && actions.button("publish", "", [t("plan.publish")], publish)),
      ),
      actions.problem("publish"),
      similarGroups(campaign.similarGroups),
    ];
  }

  /** What the action of a check does. @type {Record<string, () => any>} */
  const DOES = {
    add: () => go(`#/plan/${campaignId}/new`),
    settings: () => go(`#/plan/${campaignId}/settings`),
    publishDrafts: () => publishDrafts("drafts"),
    publishOthers,
  };

  /** Show the form of the address, and nothing else. */
  function formPage() {
    const page = { level: "h1", oncancel: close };
    const title = t(FORMS[panel]);
    return [
      h("p", null, h("a", { href: "#/organizer" }, t("orga.title")), " › ", h("a", { href: `#/plan/${campaignId}` }, campaign.name)),
      madeNotice(),
      file ? file.render(title)
        : !form ? [h("h1", null, title), load.error ? failure(load.error, load) : bones(6)]
        : panel === "settings" ? form.render(title, campaignFields(form), { ...page, onsubmit: saveSettings })
        : panel === "copy" ? copyPanel(form, campaign, close)
        : form.render(title, slotFields(form, null), {
            ...page,
            submit: t(form.values.form === "series" ? "plan.createSeries" : "plan.create"),
            onsubmit: () => saveSlot("STRICT"),
            other: button("second", t("plan.createMore"), () => saveSlot("STRICT", true), { type: "button" }),
            more: conflictsOf(form, () => saveSlot("SKIP_CONFLICTS")),
          }),
    ];
  }

  function madeNotice() {
    if (!made) return null;
    const { title, slots: dates, text = dates ? t("plan.seriesCreated", { title, count: dates.length }) : t("plan.created", { title }) } = made;
    return datesNotice(made, text);
  }

  function readiness() {
    const isDone = campaign.published && checks?.every((check) => check.kind === "good");
    const isOpen = campaign.published && Date.parse(campaign.opensAt) <= now();
    if (!slots || isDone || (campaign.published && !checks)) return null;
    return section("before", t(isOpen ? "plan.while" : campaign.published ? "plan.after" : "plan.before"), [
      checks ? h("ul", { class: "slots list" }, checks.filter((check) => !campaign.published || check.kind !== "good").map((check) =>
        h(
          "li",
          null,
          icon(ICON_OF[check.kind], check.kind),
          h("p", null, check.text),
          h(
            "div",
            { class: "row" },
            check.helps.map(([label, target], index) => (DOES[target]
              ? button(index ? "plain" : "second", label, DOES[target])
              : h("a", { class: index ? "btn plain" : "btn second", href: target }, label))),
          ),
        ))) : load.error ? failure(load.error, load) : bones(3),
      actions.problem("drafts"),
    ]);
  }

  function slotsSection() {
    const all = slots ?? [];
    const count = courseCount(all.filter((slot) => slot.status !== "CANCELLED"));
    return section("courses", withCount(t("tab.courses"), number(count)), [
      madeNotice(),
      !slots
        ? bones(6)
        : all.length > 0 && [selection(), table({ "aria-labelledby": "courses" }, columns(), list("tbody", { role: "rowgroup" }, tableRows(all)))],
    ], { actions: [["file", "plan.file"], ["new", "plan.add"]].map(([page, text]) =>
      h("a", { class: "btn second", href: `#/plan/${campaignId}/${page}` }, t(text))) });
  }

  /** What can be done with the selected slots. */
  function selection() {
    const chosen = (slots ?? []).filter((slot) => selected.has(slot.id));
    if (!chosen.length) return null;
    const isDraft = chosen.every((slot) => slot.status === "DRAFT");
    return h(
      "div",
      { class: "sheet row", "data-key": "selection", role: "group", "aria-label": t("plan.selected", { count: chosen.length }) },
      h("p", null, h("strong", null, t("plan.selected", { count: chosen.length }))),
      chosen.length === 1 && h("a", { class: "btn second", href: `#/plan/${campaignId}/new/${chosen[0].id}` }, t("course.duplicate")),
      isDraft && actions.button("chosen", "second", [t("plan.publish")], () => each("chosen", "publishSlot", chosen)),
      actions.askingButton(
        "deleteChosen",
        [t("form.delete")],
        t("plan.deleteChosenQuestion", { count: chosen.length }),
        t("form.delete"),
        () => each("deleteChosen", "deleteSlot", chosen),
      ),
      button("plain", t("plan.selectNone"), () => {
        selected.clear();
        redraw();
      }),
      actions.problem("chosen"),
      actions.asking !== "deleteChosen" && actions.problem("deleteChosen"),
    );
  }

  function columns() {
    return [
      column(hidden(t("plan.select"))),
      column(t("plan.course")),
      column(t("plan.when")),
      column(t("slot.where")),
      column(t("slot.places"), "num"),
      column(t("plan.taken"), "num"),
      column(t("plan.state")),
    ];
  }

  /** Return a row for each slot, and one for the dates of a series until they are asked for. @param {any[]} all */
  function tableRows(all) {
    const seen = new Set();
    const rows = [];
    for (const slot of all) {
      const dates = slot.seriesId ? all.filter((other) => other.seriesId === slot.seriesId && other.status !== "CANCELLED") : [];
      const isFirst = dates.length > 1 && !seen.has(slot.seriesId);
      if (slot.seriesId && seen.has(slot.seriesId) && !expanded.has(slot.seriesId)) continue;
      if (slot.seriesId) seen.add(slot.seriesId);
      const isOpen = expanded.has(slot.seriesId);
      const shown = isFirst && !isOpen ? dates : [slot];
      rows.push({
        key: slot.id,
        signature: JSON.stringify([slot, shown, shown.map((each) => selected.has(each.id)), isFirst && dates.length, isOpen]),
        build: () => row(slot, shown, isFirst ? dates.length : 0, isOpen),
      });
    }
    return rows;
  }

  /**
   * @param {any} slot @param {any[]} shown the slots for which the row stands @param {number} count of the dates that it shows and hides
   * @param {boolean} isOpen
   */
  function row(slot, shown, count, isOpen) {
    const isChosen = shown.every(({ id }) => selected.has(id));
    const pick = h("input", { type: "checkbox", checked: isChosen, "aria-label": t("plan.selectOne", { title: slot.title }), onchange: () => {
      for (const { id } of shown) if (isChosen) selected.delete(id);
      else selected.add(id);
      redraw();
    } });
    const sum = (/** @type {(each: any) => number} */ value) => shown.reduce((total, each) => total + value(each), 0);
    const toggle = count > 0 && toggleButton(t(isOpen ? "plan.lessDates" : "plan.dates", { count }), isOpen, () => {
      if (!expanded.delete(slot.seriesId)) expanded.add(slot.seriesId);
      redraw();
    }, "plain");
    const meetings = slot.meetingCount > 1 && h("span", { class: "small soft" }, t("slot.meetings", { count: slot.meetingCount }));
    return h(
      "tr",
      { role: "row", "data-key": slot.id },
      h("td", { role: "cell", class: "pick" }, pick),
      h(
        "th",
        { role: "rowheader", scope: "row" },
        h("a", { href: `#/course/${slot.id}` }, slot.status === "CANCELLED" ? h("s", null, slot.title) : slot.title),
        slot.onlyForGroups.length > 0 && h("span", { class: "small soft" }, t("state.onlyFor", { groups: groupsOf(slot) })),
        slot.groupLimits.length > 0 && h("span", { class: "small soft" }, commas(limitTexts(slot.groupLimits))),
      ),
      h(
        "td",
        { role: "cell", class: "wide" },
        slot.timeZone === zone() ? "" : `${slot.timeZone.replace(/_/g, " ")}: `,
        shown.length > 1 ? shortOf(slot.startTime, slot.timeZone) : shortWhenOf(slot.startTime, slot.timeZone),
        meetings,
        toggle && [" ", toggle],
      ),
      h("td", { role: "cell", class: "where" }, whereOf(slot) || h("span", { class: "soft" }, "–")),
      countCell(t("slot.places"), number(sum((each) => each.capacity))),
      countCell(
        t("plan.taken"),
        number(sum((each) => each.capacity - each.remaining)),
        slot.waitlistLength > 0 && h("span", { class: "soft" }, t("state.waitingCount", { count: slot.waitlistLength })),
      ),
      h("td", { role: "cell" }, stateOf(shown)),
    );
  }

  function foot() {
    return h(
      "section",
      { class: "stack", "data-key": "foot", "aria-label": t("plan.more") },
      exportButtons(actions, campaignId, t("plan.export")),
      h("div", { class: "row even" },
        letter.button(),
        h("a", { class: "btn second", href: `#/plan/${campaignId}/copy` }, t("feed.copy")),
        site.sendsMail && h("a", { class: "btn second", href: `#/mail/texts/${campaignId}` }, t("plan.mails")),
        campaign.published && actions.button("unpublish", "second", [t("plan.unpublish")], unpublish),
        actions.askingButton("delete", [t("plan.delete")], t("plan.deleteQuestion", { name: campaign.name }), t("plan.delete"), remove)),
      actions.problem("unpublish"),
      letter.render(),
    );
  }

  return {
    title: () => campaign?.name ?? t("orga.title"),
    width: /** @type {"wide"} */ ("wide"),
    render() {
      if (load.error && !(campaign && slots)) return [failure(load.error, load)];
      if (!campaign) return [bones(6)];
      if (isForm) return formPage();
      return [...head(), readiness(), slotsSection(), foot()];
    },
  };
}

/** @param {any[]} slots */
function stateOf(slots) {
  const drafts = slots.filter((slot) => slot.status === "DRAFT").length;
  if (slots[0].status === "CANCELLED") return h("span", { class: "tag over" }, t("state.cancelled"));
  if (drafts) return h("span", { class: "tag wait" }, drafts === slots.length ? t("orga.draft") : t("orga.drafts", { count: drafts }));
  return h("span", { class: "soft" }, t("plan.ready"));
}
