// @ts-check
/** The draw of a campaign: its settings, the demand, a preview, and its steps up to the record. */
import { codeOf, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, button, failure, notice, section } from "../../parts.js";
import { number, schoolZone, t } from "../../text.js";
import { evidence } from "../wishes.js";
import { saveCsv } from "./files.js";
import { Actions } from "./forms/actions.js";
import { COUNT, Form, input } from "./forms/form.js";
import { plusDays, toLocal, whenOf } from "./forms/localtime.js";
import { countTable } from "./parts.js";

const READ_DRAW_AGAIN_MS = 2000;

/** @param {string} campaignId */
export function openDraw(campaignId) {
  const zone = schoolZone; // a form keeps its zone
  /** @type {any} */
  let data = null;
  let error = "";
  /** @type {Form | null} */
  let form = null;
  const seedForm = new Form("draw", { seed: "" });
  const reasonForm = new Form("draw", { reason: "" });
  const previewForm = new Form("draw", { maxBookings: "" });
  /** The places that courses have in the preview only, by id. @type {Record<string, string>} */
  const whatIf = {};
  /** @type {any} */
  let preview = null;
  const actions = new Actions();

  async function load() {
    try {
      data = await run("drawOfCampaign", { campaign: campaignId });
      error = data.campaign ? "" : "CAMPAIGN_NOT_FOUND";
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  load();
  // A worker of the server closes, and finishes what was published.
  const timer = setInterval(() => isMoving() && load(), READ_DRAW_AGAIN_MS);

  function isMoving() {
    const draw = data?.draw;
    return draw && /** @type {any} */ ({ COLLECTING: true, CLOSED: !draw.root, PUBLISHED: !draw.isWritten })[draw.state];
  }

  function edit() {
    const draw = data.draw?.state === "COLLECTING" ? data.draw : null;
    form = new Form("draw", {
      wishesUntil: draw ? toLocal(draw.wishesUntil, zone) : plusDays(toLocal(data.serverTime, zone), 7),
      method: draw?.method ?? "ROUNDS",
      showsDemand: draw?.showsDemand ?? true,
      leftoversOpenAt: toLocal(draw?.leftoversOpenAt, zone),
      joinsWaitlists: draw?.joinsWaitlists ?? true,
      seedSource: draw?.announcement.source ?? "",
      seedAt: toLocal(draw?.announcement.at, zone),
      reason: "",
    });
    redraw();
    form.focusFirst();
  }

  function close() {
    form = null;
    redraw();
  }

  async function save() {
    const current = /** @type {Form} */ (form);
    const saved = await current.send("configureDraw", () => {
      const [leftoversOpenAt, seedAt] = ["leftoversOpenAt", "seedAt"].map((each) => current.text(each) && current.instant(each, zone));
      return { input: { campaignId, ...current.values, wishesUntil: current.instant("wishesUntil", zone), leftoversOpenAt, seedAt } };
    });
    if (!saved) return;
    close();
    await load();
  }

  /** @param {string} key @param {string} name */
  async function act(key, name) {
    if (await actions.run(key, name, { id: campaignId })) await load();
  }

  async function runDraw() {
    if (await seedForm.send("runDraw", () => ({ id: campaignId, seed: seedForm.text("seed", true) }))) await load();
  }

  async function supersede() {
    if (!(await reasonForm.send("supersedeDraw", () => ({ id: campaignId, reason: reasonForm.text("reason", true) })))) return;
    reasonForm.set("reason", "");
    preview = null;
    await load();
  }

  async function showPreview() {
    const capacities = Object.entries(whatIf).filter(([, count]) => count !== "").map(([slotId, count]) => ({ slotId, capacity: Number(count) }));
    preview = await previewForm.send(
      "previewDraw",
      () => ({
        campaign: campaignId,
        maxBookings: previewForm.integer("maxBookings", false),
        capacities,
      }),
    );
    redraw();
  }

  function settingsForm() {
    const current = /** @type {Form} */ (form);
    return current.render(t(data.draw ? "draw.settings" : "draw.open"), [
      h("p", null, t("draw.openHelp")),
      current.time("wishesUntil", zone, { required: true }),
      current.select("method", ["ROUNDS", "SERIAL"].map((each) => [each, current.label(each)])),
      current.check("showsDemand"),
      current.check("joinsWaitlists"),
      current.time("leftoversOpenAt", zone),
      current.field("seedSource", { maxlength: 500, autocomplete: "off" }),
      current.time("seedAt", zone),
      data.draw && data.draw.state !== "COLLECTING" && current.field("reason", { maxlength: 500 }),
    ], { onsubmit: save, oncancel: close });
  }

  /** What draws: a field for what the announced source gave, or a button for the seed of the server. @param {any} announcement */
  function drawing({ source, at }) {
    if (!source) return [
      actions.askingButton("run", [t("draw.run")], t("draw.serverQuestion"), t("draw.run"), () => act("run", "runDraw"), ""),
      actions.problem("run"),
    ];
    return seedForm.render(t("draw.run"), [
      h("p", null, t("draw.runHelp", { source, time: whenOf(at, zone) })),
      seedForm.field("seed", { maxlength: 500, autocomplete: "off" }),
    ], { submit: t("draw.run"), onsubmit: runDraw });
  }

  /** The steps of the draw, and what can be done next. */
  function steps() {
    const { draw } = data;
    const canSupersede = draw.root && ["CLOSED", "DRAWN"].includes(draw.state);
    return section("steps", t(`draw.state.${draw.state}`), [
      h(
        "ul",
        { class: "stack tight" },
        draw.acts.map((/** @type {any} */ each) => h(
          "li",
          null,
          `${whenOf(each.at, zone)}: ${t(`draw.state.${each.state}`)}`,
          each.by && ` · ${each.by.name}`,
          each.reason && ` · ${each.reason}`,
        )),
      ),
      draw.root && evidence(draw),
      draw.state === "COLLECTING" && [
        h("p", null, t("draw.until", { time: whenOf(draw.wishesUntil, zone) })),
        h(
          "div",
          { class: "row" },
          button("second", t("draw.settings"), edit),
          actions.askingButton("close", [t("draw.close")], t("draw.closeQuestion"), t("draw.close"), () => act("close", "closeWishes")),
        ),
        actions.problem("close"),
      ],
      draw.state === "CLOSED" && (draw.root ? drawing(draw.announcement) : notice("wait", "clock", t("draw.closing"))),
      draw.state === "DRAWN" && [
        h("p", null, t("draw.drawnHelp")),
        actions.askingButton("publish", [t("draw.publish")], t("draw.publishQuestion"), t("draw.publish"), () => act("publish", "publishDraw"), ""),
        actions.problem("publish"),
      ],
      draw.state === "PUBLISHED" && (draw.isWritten ? notice("yours", "tick", t("draw.written")) : notice("wait", "clock", t("wishes.booking"))),
      canSupersede && reasonForm.render(t("draw.supersede"), [h("p", null, t("draw.supersedeHelp")), reasonForm.field("reason", { maxlength: 500 })], {
        submit: t("draw.supersede"),
        onsubmit: supersede,
      }),
      draw.isWritten && !form && h("p", null, button("second", t("draw.again"), edit)),
    ]);
  }

  function demandSection() {
    const all = data.wishStatistics ?? [];
    const columns = [t("plan.course"), t("plan.places"), t("draw.wishes"), t("draw.first")];
    const save = () => saveCsv(`${data.campaign.name.replace(/[^\p{L}\p{N}]+/gu, "-")}-${t("draw.demandFile")}.csv`, [
      columns,
      ...all.map((/** @type {any} */ each) => [each.slot?.title ?? "", String(each.slot?.capacity ?? ""), String(each.wishes), String(each.firstWishes)]),
    ]);
    return section("demand", t("draw.demand"), [
      all.length
        ? countTable(
          { "aria-labelledby": "demand" },
          columns,
          all.map((/** @type {any} */ each) => [
            each.slotId,
            h("a", { href: `#/course/${each.slotId}` }, each.slot?.title ?? "–"),
            number(each.slot?.capacity ?? 0),
            number(each.wishes),
            number(each.firstWishes),
          ]),
        )
        : h("p", { class: "soft" }, t("draw.noWishes")),
    ], { actions: all.length > 0 && button("second", t("csv.save"), save) });
  }

  function previewSection() {
    return section("preview", t("draw.preview"), [
      previewForm.render(t("draw.whatIf"), [
        h("p", null, t("draw.previewHelp")),
        previewForm.field("maxBookings", COUNT),
      ], { submit: t("draw.showPreview"), onsubmit: showPreview }),
      preview && [measures(), previewedSlots()],
    ]);
  }

  function measures() {
    const columns = [t("draw.method"), t("draw.without"), t("draw.places"), t("draw.rank"), t("draw.envious")];
    return countTable(
      { "aria-labelledby": "preview" },
      columns,
      preview.measures.map((/** @type {any} */ each) => [
        each.method,
        t(`draw.${each.method}`),
        `${number(each.withoutPlace)} / ${number(each.users)}`,
        number(each.places),
        each.averageRank === null ? "–" : number(Math.round(each.averageRank * 100) / 100),
        number(each.envious),
      ]),
    );
  }

  /** A field for another number of places in the preview. @param {any} slot */
  function places(slot) {
    const oninput = (/** @type {any} */ event) => (whatIf[slot.slotId] = event.target.value);
    return input(whatIf[slot.slotId] ?? String(slot.capacity), {
      ...COUNT,
      class: "input fit",
      "aria-label": `${t("plan.places")}${t("whose", { name: slot.title })}`,
      oninput,
    });
  }

  function previewedSlots() {
    const columns = [t("plan.course"), t("plan.places"), t("plan.taken"), t("draw.refused")];
    return countTable(
      { "aria-label": t("plan.courses") },
      columns,
      preview.slots.map((/** @type {any} */ each) => [each.slotId, each.title, places(each), number(each.booked + each.granted), number(each.refused)]),
    );
  }

  return {
    title: () => t("draw.title"),
    render: () => [
      h(
        "div",
        { class: "stack tight" },
        h("p", null, h("a", { href: `#/plan/${campaignId}` }, data?.campaign?.name ?? t("orga.title"))),
        h("h1", null, t("draw.title")),
      ),
      error && !data ? failure(error, load) : !data ? bones(4) : [
        form && settingsForm(),
        !data.draw && !form && notice("", "star", t("draw.about"), button("", t("draw.open"), edit)),
        data.draw && [steps(), demandSection(), !["PUBLISHED", "SUPERSEDED"].includes(data.draw.state) && previewSection()],
      ].flat(2),
    ].flat(),
    leave() {
      clearInterval(timer);
    },
  };
}
