// @ts-check
/** The draw of a campaign: its settings, the demand, a preview, and its steps up to the record. */
import { codeOf, run } from "../../client.js";
import { now } from "../../clock.js";
import { around, follow } from "../../draws.js";
import { h, redraw } from "../../kernel.js";
import { bones, button, failure, notice, section } from "../../parts.js";
import { number, schoolZone, shortWhenOf, t, timeOf } from "../../text.js";
import { evidence, folded } from "../wishes.js";
import { saveCsv } from "./files.js";
import { Actions, focusKey } from "./forms/actions.js";
import { COUNT, Form, input } from "./forms/form.js";
import { plusDays, toLocal, whenOf } from "./forms/localtime.js";
import { countTable } from "./parts.js";

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
  /** How often each course is wished for. @type {any[]} */
  let demand = [];
  /** The draw and its state at the last read, null before. @type {any} */
  let stage = null;
  const actions = new Actions();

  async function load() {
    try {
      data = await run("drawOfCampaign", { campaign: campaignId });
      [data.draw] = data.draws;
      error = data.campaign ? "" : "CAMPAIGN_NOT_FOUND";
      const before = stage;
      stage = data.draw && `${data.draw.recordId} ${data.draw.state}`;
      if (before !== null && stage !== before) readDemand.again();
      if (data.draw?.state === "DRAWN" && stage !== before) showResult();
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
    return data?.draw ?? null;
  }
  // A worker of the server closes, and finishes what was published.
  const reading = follow(load);

  /** Read the demand while it changes, apart from the draw: counting all wishes takes longer. */
  const readDemand = follow(async () => {
    try {
      demand = (await run("drawDemand", { campaign: campaignId })).wishStatistics ?? [];
    } catch (caught) {
      codeOf(caught);
    }
    redraw();
    return !data?.draw || data.draw.state === "COLLECTING" ? null : undefined;
  }, () => around(30_000, 10_000));
  // The field for the seed appears at its moment.
  const timer = setInterval(redraw, 5000);

  /** Whether wishes can be entered. */
  const isOpen = () => data.draw?.state === "COLLECTING";

  function edit() {
    const draw = isOpen() ? data.draw : null;
    form = new Form("draw", {
      wishesUntil: draw ? toLocal(draw.wishesUntil, zone) : plusDays(toLocal(data.serverTime, zone), 7),
      method: draw?.method ?? "ROUNDS",
      showsDemand: draw?.showsDemand ?? true,
      leftoversOpenAt: toLocal(draw?.leftoversOpenAt, zone),
      joinsWaitlists: draw?.joinsWaitlists ?? true,
      seedSource: draw?.announcement.source ?? "",
      seedAt: toLocal(draw?.announcement.at, zone),
      recordFor: draw?.recordFor ?? "PARTICIPANTS",
      reason: "",
      copyWishesOf: "",
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
      const copyWishesOf = current.text("copyWishesOf");
      return { input: { campaignId, ...current.values, wishesUntil: current.instant("wishesUntil", zone), leftoversOpenAt, seedAt, copyWishesOf } };
    });
    if (!saved) return;
    close();
    await reading.again();
  }

  /** @param {string} key @param {string} name */
  async function act(key, name) {
    if (await actions.run(key, name, { id: campaignId })) await reading.again();
  }

  /** Ask before the draw, with what was entered: nothing replaces it. */
  function askToRun() {
    if (!seedForm.text("seed", true)) return seedForm.showErrors();
    actions.asking = "run";
    redraw();
    focusKey("keep run");
  }

  async function runDraw() {
    const seed = data.draw.announcement.source && seedForm.text("seed");
    if (await actions.run("run", "runDraw", { id: campaignId, seed })) {
      seedForm.forget();
      await reading.again();
    }
  }

  /** @param {"supersedeDraw" | "cancelDraw"} name */
  async function end(name) {
    if (!(await reasonForm.send(name, () => ({ id: campaignId, reason: reasonForm.text("reason", true) })))) return;
    reasonForm.values.reason = "";
    reasonForm.forget();
    preview = null;
    await reading.again();
    if (name === "supersedeDraw") edit(); // it begins with a seed of the server
  }

  /** Show what was drawn, without what somebody tried before. */
  function showResult() {
    for (const id of Object.keys(whatIf)) delete whatIf[id];
    previewForm.values.maxBookings = "";
    showPreview();
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
      current.select("recordFor", ["PARTICIPANTS", "EVERYBODY"].map((each) => [each, current.label(each)])),
      data.draw && !isOpen() && [
        current.field("reason", { maxlength: 500 }),
        current.select("copyWishesOf", [["", t("draw.copyNone")], ...data.draws.filter((/** @type {any} */ each) => each.root).map(
          (/** @type {any} */ each) => [each.recordId, t("wishes.former", { time: whenOf(each.acts[0].at, zone) })],
        )]),
      ],
    ], { onsubmit: save, oncancel: close });
  }

  /** What draws: one field, named after the announced source, or no field for the seed of the server. @param {any} draw */
  function drawing({ announcement: { source, at }, acts }) {
    const label = t("draw.run");
    if (!source || actions.asking === "run") {
      const question = source
        ? t("draw.runQuestion", { seed: seedForm.text("seed") })
        : t("draw.serverQuestion", { time: shortWhenOf(acts[0].at, zone) });
      return actions.askingButton("run", [label], question, label, runDraw, "");
    }
    if (Date.parse(at) > now()) return notice("wait", "clock", t("draw.runFrom", { source, time: whenOf(at, zone) }));
    return seedForm.render(label, [
      seedForm.field("seed", { label: source, maxlength: 500, autocomplete: "off" }),
    ], { submit: label, onsubmit: askToRun });
  }

  /** The step of the draw, and what can be done next. */
  function steps() {
    const { draw, campaign } = data;
    return section("steps", t(isOpen() && !campaign.published ? "orga.draft" : `draw.state.${draw.state}`), [
      draw.problem && notice("stop", "warning", t("draw.problem", { problem: t(`refusal.${draw.problem}`, {}, draw.problem) })),
      draw.state === "COLLECTING" && [
        campaign.published
          ? h("p", null, t("draw.until", { time: whenOf(draw.wishesUntil, zone) }))
          : notice("wait", "warning", t("draw.draft"), h("a", { class: "btn second", href: `#/plan/${campaignId}` }, campaign.name)),
        h(
          "div",
          { class: "row" },
          button("second", t("draw.settings"), edit),
          campaign.published && actions.askingButton("close", [t("draw.close")], t("draw.closeQuestion"), t("draw.close"), () => act("close", "closeWishes")),
        ),
        actions.problem("close"),
      ],
      draw.state === "CLOSED" && (draw.root ? drawing(draw) : notice("wait", "clock", t("draw.closing"))),
      draw.state === "DRAWN" && [
        h("p", null, t("draw.drawnHelp")),
        h(
          "div",
          { class: "row" },
          actions.askingButton("publish", [t("draw.publish")], t("draw.publishQuestion"), t("draw.publish"), () => act("publish", "publishDraw"), ""),
        ),
        actions.problem("publish"),
      ],
      draw.state === "PUBLISHED" && (draw.isWritten ? notice("yours", "tick", t("draw.written")) : notice("wait", "clock", t("draw.writing", {
        time: timeOf(draw.acts.at(-1).at, zone),
      }))),
      ["COLLECTING", "CLOSED", "DRAWN"].includes(draw.state) ? ending(draw)
        : (draw.isWritten || draw.state === "CANCELLED") && !form && h("p", null, button("second", t("draw.again"), edit)),
      evidence(draw, { method: t(`draw.${draw.method}`) }),
    ]);
  }

  /** What ends a draw without a result: another one, or none. @param {any} draw */
  function ending({ root }) {
    const cancel = { submit: t("draw.cancel"), onsubmit: () => end("cancelDraw") };
    const replace = { submit: t("draw.supersede"), onsubmit: () => end("supersedeDraw"), other: button("second", cancel.submit, cancel.onsubmit) };
    return folded("ending", t("draw.end"), [reasonForm.render(
      t("draw.end"),
      [h("p", null, t("draw.cancelHelp")), root && h("p", null, t("draw.supersedeHelp")), reasonForm.field("reason", { maxlength: 500 })],
      { kind: "second", ...(root ? replace : cancel) },
    )]);
  }

  function demandSection() {
    const all = demand;
    const columns = [t("plan.course"), t("slot.places"), t("draw.wishes"), t("draw.first")];
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
    const isDrawn = data.draw.state === "DRAWN"; // then the lots are those of the draw
    const result = preview && [measures(), h("p", { class: "soft" }, t("draw.measuresHelp")), previewedSlots()];
    if (isDrawn) return section("preview", t("draw.result"), [result || button("second", t("history.show"), showPreview)]);
    return section("preview", t("draw.preview"), [
      previewForm.render(t("draw.whatIf"), [
        h("p", null, t("draw.previewHelp")),
        previewForm.field("maxBookings", COUNT),
      ], { submit: t("history.show"), onsubmit: showPreview }),
      result,
    ]);
  }

  /** Return what each method leads to, and of the result what the method of the draw did. */
  function measures() {
    const { state, method } = data.draw;
    const shown = preview.measures.filter((/** @type {any} */ each) => state !== "DRAWN" || each.method === method);
    const columns = [t("draw.method"), t("draw.without"), t("draw.places"), t("draw.rank"), t("draw.envious")];
    return countTable(
      { "aria-labelledby": "preview" },
      columns,
      shown.map((/** @type {any} */ each) => [
        each.method,
        t(`draw.${each.method}`),
        `${number(each.withoutPlace)} / ${number(each.users)}`,
        number(each.places),
        each.averageRank === null ? "–" : number(Math.round(each.averageRank * 100) / 100),
        number(each.envious),
      ]),
    );
  }

  /** A field for another number of places in the preview, or the number that was drawn. @param {any} slot */
  function places(slot) {
    if (data.draw.state === "DRAWN") return number(slot.capacity);
    const oninput = (/** @type {any} */ event) => (whatIf[slot.slotId] = event.target.value);
    return input(whatIf[slot.slotId] ?? String(slot.capacity), {
      ...COUNT,
      class: "input fit",
      "aria-label": `${t("slot.places")}${t("whose", { name: slot.title })}`,
      oninput,
    });
  }

  function previewedSlots() {
    const columns = [t("plan.course"), t("slot.places"), t("plan.taken"), t("draw.refused")];
    return countTable(
      { "aria-label": t("tab.courses") },
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
      error && !data ? failure(error, reading.again) : !data ? bones(4) : [
        form && settingsForm(),
        !data.draw && !form && notice("", "star", t("draw.about"), button("", t("draw.open"), edit)),
        data.draw && [steps(), demandSection(), !["PUBLISHED", "SUPERSEDED", "CANCELLED"].includes(data.draw.state) && previewSection()],
        data.draws.slice(1).map((/** @type {any} */ each) => section(each.recordId, t("wishes.former", { time: whenOf(each.acts[0].at, zone) }), [
          h("p", null, t(`draw.state.${each.state}`)),
          evidence(each, { method: t(`draw.${each.method}`) }),
        ])),
      ].flat(2),
    ].flat(),
    leave() {
      reading.stop();
      readDemand.stop();
      clearInterval(timer);
    },
  };
}
