// @ts-check
/** A course of an organizer: who has a place and who waits, its dates, its facts and its history. */
import { go, say, site } from "../../page.js";
import { now } from "../../clock.js";
import { run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, failure, field, section } from "../../parts.js";
import { whereOf } from "../../rows.js";
import { groupsOf, offText } from "../../slotstate.js";
import { subscribe } from "../../socket.js";
import { readerOf } from "../../store.js";
import { commas, dayOf, periods, shortOf, t, timeOf } from "../../text.js";
import { Actions } from "./forms/actions.js";
import { announcer } from "./forms/announce.js";
import { exportButtons } from "./forms/exports.js";
import { input } from "./forms/form.js";
import { limitTexts } from "./forms/limits.js";
import { historyOf } from "./course/history.js";
import { level, zoneNote } from "./parts.js";
import { whenOf } from "./forms/localtime.js";
import { mover } from "./course/move.js";
import { roster } from "./course/roster.js";
import { series } from "./course/series.js";
import { addTyped } from "./forms/resources.js";
import { changedSlot, scopes, slotFields, slotForm } from "./forms/slotform.js";

const READ_COURSE_AGAIN_MS = 2000;
const SHOWN_MEETINGS = 5;

/** @param {string} part a slot's id, with "/edit" for the form to change it */
export function openCourse(part) {
  const [slotId, mode] = part.split("/");
  /** @type {any} */
  let slot = null;
  /** @type {any} */
  let form = null;
  let scope = "THIS";
  let cancelReason = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const load = readerOf(async () => {
    ({ slot } = await run("course", { id: slotId }));
    redraw();
    if (!slot) return "SLOT_NOT_FOUND";
    if (!mode) await Promise.all([people.load(slot), dates.load(slot), log.load()]);
  });
  const actions = new Actions();
  const people = roster(slotId, load);
  const dates = series(load);
  const moves = mover(dates.dates, load);
  const log = historyOf({ slotId });
  const letter = announcer({ slotId });

  load().then(() => mode && slot && edit());
  const end = subscribe("watchSlots", { slotIds: [slotId] }, () => {
    clearTimeout(timer);
    timer = setTimeout(load, READ_COURSE_AGAIN_MS);
  });

  function edit() {
    form = slotForm(slot, slot.timeZone).keep();
    redraw();
    form.focusFirst();
  }

  /** Leave the form, to which nobody goes back. */
  const close = () => location.replace(`#/course/${slotId}`);

  async function save() {
    const toVariables = async () => {
      await addTyped(form);
      return { input: changedSlot(form, slot) };
    };
    if (!(await form.send("updateSlot", toVariables))) return;
    form.forget();
    say(t("form.saved"));
    close();
  }

  /** @param {string} name of the mutation @param {string} said */
  async function change(name, said) {
    if (await actions.run(name, name, { id: slotId, scope, ...(name === "cancelSlot" && { reason: cancelReason }) }, said)) await load();
  }

  async function remove() {
    if (await actions.run("deleteSlot", "deleteSlot", { id: slotId, scope }, t("course.deleted")))
      go(slot.campaign ? `#/plan/${slot.campaign.id}` : "#/organizer");
  }

  function head() {
    const isOver = Date.parse(slot.endTime) < now();
    const taken = slot.capacity - slot.remaining;
    return [
      h(
        "div",
        { class: "row" },
        h("div", { class: "stack tight grow" },
          slot.campaign && h("p", null, h("a", { href: `#/plan/${slot.campaign.id}` }, slot.campaign.name)),
          h("h1", null, slot.status === "CANCELLED" ? h("s", null, slot.title) : slot.title, " ", stateTag(isOver)),
          h("p", { class: "soft" }, [when(), periods.of(slot.meetings, slot.timeZone), whereOf(slot)].filter(Boolean).join(" · ")),
          zoneNote(slot.timeZone)),
        h("div", { class: "row push even" },
          slot.status !== "CANCELLED" && h("a", { class: "btn second", href: `#/course/${slotId}/edit` }, t("course.edit")),
          slot.campaign && h("a", { class: "btn second", href: `#/plan/${slot.campaign.id}/new/${slotId}` }, t("course.duplicate")),
          slot.status === "PUBLISHED" && h("a", { class: "btn second", href: `#/door/${slot.id}` }, t("door.title")),
          slot.status === "DRAFT" && actions.button("publishSlot", "second", [t("course.publish")], () => change("publishSlot", t("course.published")))),
      ),
      actions.problem("publishSlot"),
      slot.status !== "CANCELLED" && h(
        "div",
        { class: "stack tight" },
        level(taken, slot.capacity),
        h(
          "p",
          null,
          h("strong", null, t("orga.taken", { taken, count: slot.capacity })),
          slot.waitlistLength > 0 && t("state.waitingCount", { count: slot.waitlistLength }),
        ),
        limits(),
      ),
      slot.cancelReason && h("p", null, offText(slot)),
      slot.description && h("p", { class: "text" }, slot.description),
    ];
  }

  /** Return the limits of groups: those of the course, and those of every course of its campaign. */
  function limits() {
    const own = limitTexts(slot.groupLimits);
    const common = limitTexts(slot.campaign?.groupLimits ?? []);
    return [
      slot.onlyForGroups.length > 0 && h("p", null, t("state.onlyFor", { groups: groupsOf(slot) })),
      own.length > 0 && h("p", null, t("limits.here", { limits: commas(own) })),
      common.length > 0 && h("p", { class: "soft" }, t("limits.everywhere", { limits: commas(common) })),
    ];
  }

  /** @param {boolean} isOver */
  function stateTag(isOver) {
    if (slot.status === "CANCELLED") return h("span", { class: "tag over" }, t("state.cancelled"));
    if (slot.status === "DRAFT") return h("span", { class: "tag wait" }, t("orga.draft"));
    return isOver && h("span", { class: "tag over" }, t("state.over"));
  }

  function when() {
    const [first] = slot.meetings;
    const last = slot.meetings[slot.meetings.length - 1];
    const timesOf = (/** @type {any} */ each) => `${shortOf(each.startTime, slot.timeZone)}–${timeOf(each.endTime, slot.timeZone)}`;
    if (slot.meetings.length > 1 && slot.meetings.every((/** @type {any} */ each) => timesOf(each) === timesOf(first))) {
      const [from, until] = [first, last].map((each) => dayOf(each.startTime, slot.timeZone));
      return `${timesOf(first)}; ${t("slot.courseOf", { count: slot.meetings.length, from, until })}`;
    }
    const shown = slot.meetings
      .slice(0, SHOWN_MEETINGS)
      .map((/** @type {any} */ each) => `${whenOf(each.startTime, slot.timeZone)}–${timeOf(each.endTime, slot.timeZone)}`);
    const more = slot.meetings.length - shown.length;
    return [...shown, more > 0 && t("course.moreMeetings", { count: more })].filter(Boolean).join(t("semicolon"));
  }

  function foot() {
    const question = t(slot.seriesId ? "course.cancelQuestionSeries" : "course.cancelQuestion", { title: slot.title, count: slot.capacity - slot.remaining });
    const which = slot.seriesId ? scope : "ONE";
    return section("more", t("course.more"), [
      exportButtons(actions, slotId, t("course.export")),
      site.sendsMail && h("div", { class: "row" }, letter.button(), h("a", { class: "btn second", href: `#/mail/${slotId}` }, t("mail.title"))),
      letter.render(),
      slot.seriesId && h(
        "p",
        { class: "row" },
        h("label", { for: "scope" }, t("slotForm.scope")),
        input(scope, { class: "input fit", id: "scope", options: scopes(), onchange: (/** @type {any} */ event) => {
          scope = event.target.value;
          redraw();
        } }),
      ),
      h("div", { class: "row even" },
        slot.status === "PUBLISHED" && actions.askingButton(
          "cancelSlot",
          [t(`course.cancel.${which}`)],
          question,
          t("course.cancelYes"),
          () => change("cancelSlot", t("course.cancelled")),
          "final",
          field("reason", t("slotForm.cancelReason"), { maxlength: 200, oninput: (/** @type {any} */ event) => {
            cancelReason = event.target.value;
          } }, "", t("course.reasonHelp")),
        ),
        slot.remaining === slot.capacity && actions.askingButton(
          "deleteSlot",
          [t(`course.delete.${which}`)],
          t("course.deleteQuestion", { title: slot.title }),
          t("form.delete"),
          remove,
        )),
    ]);
  }

  return {
    title: () => slot?.title ?? t("orga.title"),
    width: /** @type {"wide"} */ ("wide"),
    render() {
      if (load.error && !slot) return [failure(load.error, load)];
      if (!slot || (mode && !form)) return [bones(6)];
      if (mode) return [
        h("p", null, h("a", { href: `#/course/${slotId}` }, slot.title)),
        form.render(t("course.edit"), slotFields(form, slot), { level: "h1", onsubmit: save, oncancel: close }),
      ];
      return [...head(), people.render(slot), dates.render(slot), moves.render(slot), foot(), log.render()];
    },
    leave() {
      clearTimeout(timer);
      end();
    },
  };
}
