// @ts-check
/** A copy of a campaign for another year: first what it would contain, then the copy. */
import { h, redraw } from "../../../kernel.js";
import { icon } from "../../../parts.js";
import { problemText, t, zoneOf } from "../../../text.js";
import { COUNT, Form } from "./form.js";
import { whenOf } from "./localtime.js";

const YEAR_WEEKS = 52;
const SHOWN_SLOTS = 20;

/** Return the form of a copy. @param {any} campaign */
export function copyForm(campaign) {
  return new Form("copy", { name: campaign.name, weeks: YEAR_WEEKS, allowPast: false });
}

/** @param {any} form of `copyForm`, which gets what the copy would contain as its `plan` @param {any} campaign @param {() => void} oncancel */
export function copyPanel(form, campaign, oncancel) {
  const input = () => ({ campaignId: campaign.id, name: form.text("name", true), weeks: form.integer("weeks"), allowPast: form.values.allowPast });
  const isPlanned = form.plan?.key === form.key;
  const isReady = isPlanned && form.plan.problemCount === 0;
  async function submit() {
    if (isReady) {
      const copied = await form.send("copyCampaign", () => ({ input: { ...input(), dryRun: false, idempotencyKey: form.key } }));
      if (!copied) return;
      form.forget();
      return location.replace(`#/plan/${copied.campaign.id}`);
    }
    const key = form.key;
    const plan = await form.send("copyCampaign", () => ({ input: { ...input(), dryRun: true } }));
    form.plan = plan ? { ...plan, key } : null;
    redraw();
  }
  const fields = [h(
    "div",
    { class: "columns" },
    form.field("name", { maxlength: 200 }),
    form.field("weeks", { ...COUNT, min: 1, max: 200, onset: () => null }),
  )];
  const problems = form.refusal?.problems ?? (isPlanned ? form.plan.problems : []);
  const hasPast = form.values.allowPast || problems.some((/** @type {any} */ each) => each.kind === "IN_PAST");
  const more = h(
    "div",
    { class: "stack", role: "status" },
    isPlanned && planned(form.plan),
    problems.length > 0 && h(
      "div",
      { class: "stack tight" },
      h("h2", null, t("copy.problems", { count: form.plan?.problemCount ?? problems.length })),
      h(
        "ul",
        { class: "stack tight" },
        problems.map((/** @type {any} */ each) => h("li", { class: "error" }, icon("warning"), h("span", null, problemText(each)))),
      ),
    ),
    hasPast && form.check("allowPast"),
  );
  return form.render(t("copy.title", { name: campaign.name }), fields, {
    level: "h1",
    submit: isReady ? t("copy.submit") : t("copy.check"),
    onsubmit: submit,
    oncancel,
    more,
  });
}

/** @param {any} plan */
function planned(plan) {
  const slots = plan.slots.slice(0, SHOWN_SLOTS);
  const zone = zoneOf(slots[0]);
  const line = (/** @type {any} */ slot) => h("li", null, `${slot.title} · ${whenOf(slot.startTime, slot.timeZone)}`);
  return [
    h("p", null, t("copy.plan", { count: plan.slotCount, opens: whenOf(plan.opensAt, zone), closes: whenOf(plan.closesAt, zone) })),
    h(
      "ul",
      { class: "soft stack tight" },
      slots.map(line),
      plan.slotCount > slots.length && h("li", null, t("copy.others", { count: plan.slotCount - slots.length })),
    ),
    listNotice("clock", t("copy.adjusted"), plan.adjustedSlots.map(line)),
    listNotice(
      "warning",
      t("copy.draftProblems", { count: plan.draftProblemCount }),
      plan.draftProblems.map((/** @type {any} */ each) => h("li", null, problemText(each))),
    ),
    plan.problemCount === 0 && plan.draftProblemCount === 0 && h("p", { class: "row good" }, icon("tick"), h("span", null, t("copy.ready"))),
  ];
}

/** @param {string} iconName @param {string} text @param {any[]} lines nothing is said of none */
function listNotice(iconName, text, lines) {
  return lines.length > 0 && h("div", { class: "notice wait" }, icon(iconName), h("div", null, h("p", null, text), h("ul", null, lines)));
}
