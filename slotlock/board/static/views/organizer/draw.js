// @ts-check
/** The draw of a campaign: its settings, the demand, a preview, and its steps up to the record. */
import { run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, button, failure, icon, notice } from "../../parts.js";
import { deviceZone, errorText, number, t } from "../../text.js";
import { saveRecord } from "../wishes.js";
import { saveCsv } from "./files.js";
import { Actions } from "./forms/actions.js";
import { Form } from "./forms/form.js";
import { fromLocal, plusDays, toLocal, whenOf } from "./forms/localtime.js";

const READ_DRAW_AGAIN_MS = 2000;

/** @param {string} campaignId */
export function openDraw(campaignId) {
  /** @type {any} */
  let data = null;
  let error = "";
  /** @type {Form | null} */
  let form = null;
  const seedForm = new Form({ seed: "", seedSource: "" });
  const reasonForm = new Form({ reason: "" });
  const previewForm = new Form({ seed: "preview", maxBookings: "" });
  /** The places that courses have in the preview only, by id. @type {Record<string, string>} */
  const whatIf = {};
  /** @type {any} */
  let preview = null;
  let isPreviewing = false;
  const actions = new Actions();

  async function load() {
    try {
      data = await run("drawOfCampaign", { campaign: campaignId });
      error = data.campaign ? "" : "CAMPAIGN_NOT_FOUND";
    } catch (caught) {
      error = /** @type {any} */ (caught).code ?? "INTERNAL";
    }
    redraw();
  }
  load();
  // A worker of the server closes, and finishes what was published.
  const timer = setInterval(() => isMoving() && load(), READ_DRAW_AGAIN_MS);

  function isMoving() {
    const draw = data?.draw;
    if (!draw) return false;
    return draw.state === "COLLECTING" || (draw.state === "CLOSED" && !draw.root) || (draw.state === "PUBLISHED" && !draw.isWritten);
  }

  function edit() {
    const draw = data.draw?.state === "COLLECTING" ? data.draw : null;
    const now = toLocal(Date.parse(data.serverTime), deviceZone);
    form = new Form({
      wishesUntil: draw ? toLocal(Date.parse(draw.wishesUntil), deviceZone) : plusDays(now, 7),
      method: draw?.method ?? "ROUNDS",
      showsDemand: draw?.showsDemand ?? true,
      leftoversOpenAt: draw?.leftoversOpenAt ? toLocal(Date.parse(draw.leftoversOpenAt), deviceZone) : "",
      joinsWaitlists: draw?.joinsWaitlists ?? true,
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
      const { wishesUntil, method, showsDemand, leftoversOpenAt, joinsWaitlists } = current.values;
      if (!wishesUntil) current.fail("wishesUntil", t("form.missing"));
      return { input: { campaignId, wishesUntil: fromLocal(wishesUntil, deviceZone), method, showsDemand, joinsWaitlists, leftoversOpenAt: leftoversOpenAt ? fromLocal(leftoversOpenAt, deviceZone) : null } };
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
    const { seed, seedSource } = seedForm.values;
    const done = await seedForm.send("runDraw", () => ({ id: campaignId, seed: seed.trim() || null, source: seedSource.trim() || null }));
    if (done) await load();
  }

  async function supersede() {
    const done = await reasonForm.send("supersedeDraw", () => {
      if (!reasonForm.text("reason")) reasonForm.fail("reason", t("form.missing"));
      return { id: campaignId, reason: reasonForm.text("reason") };
    });
    if (!done) return;
    reasonForm.set("reason", "");
    preview = null;
    await load();
  }

  async function showPreview() {
    isPreviewing = true;
    redraw();
    const seed = data.draw.seed?.text ?? previewForm.text("seed");
    const most = previewForm.values.maxBookings;
    const capacities = Object.entries(whatIf).filter(([, count]) => count !== "").map(([slotId, count]) => ({ slotId, capacity: Number(count) }));
    try {
      preview = (await run("previewDraw", { campaign: campaignId, seed, maxBookings: most === "" ? null : Number(most), capacities })).previewDraw;
    } catch (caught) {
      preview = { code: /** @type {any} */ (caught).code ?? "INTERNAL" };
    }
    isPreviewing = false;
    redraw();
  }

  function settingsForm() {
    const current = /** @type {Form} */ (form);
    return current.render(t(data.draw ? "draw.settings" : "draw.open"), [
      h("p", null, t("draw.openHelp")),
      current.time("wishesUntil", t("draw.wishesUntil"), deviceZone, { required: true }),
      current.select("method", t("draw.method"), [["ROUNDS", t("draw.ROUNDS")], ["SERIAL", t("draw.SERIAL")]]),
      current.check("showsDemand", t("draw.showsDemand")),
      current.check("joinsWaitlists", t("draw.joinsWaitlists")),
      current.time("leftoversOpenAt", t("draw.leftoversOpenAt"), deviceZone),
    ], { submit: t("form.save"), onsubmit: save, oncancel: close });
  }

  /** The steps of the draw, and what can be done next. */
  function steps() {
    const { draw } = data;
    const canSupersede = draw.root && ["CLOSED", "DRAWN"].includes(draw.state);
    return h(
      "section",
      { class: "stack", "aria-labelledby": "steps", "data-key": "steps" },
      h("h2", { id: "steps" }, t(`draw.state.${draw.state}`)),
      h("ul", { class: "stack tight" }, draw.acts.map((/** @type {any} */ each) => h("li", null, `${whenOf(each.at, deviceZone)}: ${t(`draw.state.${each.state}`)}`, each.by && ` · ${each.by.name}`, each.reason && ` · ${each.reason}`))),
      draw.root && h("p", { class: "text small soft" }, t("wishes.root", { root: draw.root })),
      draw.seed && h("p", { class: "text" }, t("wishes.seed", { seed: draw.seed.text, source: draw.seed.source })),
      draw.state === "COLLECTING" && [
        h("p", null, t("draw.until", { time: whenOf(draw.wishesUntil, deviceZone) })),
        h("div", { class: "row" }, button("second", t("draw.settings"), edit), actions.askingButton("close", [t("draw.close")], t("draw.closeQuestion"), t("draw.close"), () => act("close", "closeWishes"))),
        actions.problem("close"),
      ],
      draw.state === "CLOSED" && (draw.root ? seedForm.render(t("draw.run"), [
        h("p", null, t("draw.seedHelp")),
        seedForm.field("seed", t("draw.seed"), { maxlength: 500, autocomplete: "off" }),
        seedForm.field("seedSource", t("draw.seedSource"), { maxlength: 500, autocomplete: "off" }),
      ], { submit: t("draw.run"), onsubmit: runDraw }) : notice("wait", "clock", t("draw.closing"))),
      draw.state === "DRAWN" && [h("p", null, t("draw.drawnHelp")), actions.askingButton("publish", [t("draw.publish")], t("draw.publishQuestion"), t("draw.publish"), () => act("publish", "publishDraw"), ""), actions.problem("publish")],
      draw.state === "PUBLISHED" && (draw.isWritten ? notice("yours", "tick", t("draw.written")) : notice("wait", "clock", t("wishes.booking"))),
      draw.root && h("p", null, button("second", t("wishes.record"), () => saveRecord(campaignId))),
      canSupersede && reasonForm.render(t("draw.supersede"), [h("p", null, t("draw.supersedeHelp")), reasonForm.field("reason", t("draw.reason"), { maxlength: 500 })], { submit: t("draw.supersede"), onsubmit: supersede }),
      draw.state === "PUBLISHED" && !form && h("p", null, button("second", t("draw.again"), edit)),
    );
  }

  /** @param {string} key @param {string} kind */
  const column = (key, kind = "") => h("th", { role: "columnheader", scope: "col", class: kind || null }, t(key));
  /** @param {string} key @param {string} value */
  const cell = (key, value) => h("td", { role: "cell", class: "num", "data-label": t(key) }, value);

  function demandSection() {
    const all = data.wishStatistics ?? [];
    const save = () => saveCsv(`${data.campaign.name.replace(/[^\p{L}\p{N}]+/gu, "-")}-${t("draw.demandFile")}.csv`, [[t("plan.course"), t("plan.places"), t("draw.wishes"), t("draw.first")], ...all.map((/** @type {any} */ each) => [each.slot?.title ?? "", String(each.slot?.capacity ?? ""), String(each.wishes), String(each.firstWishes)])]);
    return h(
      "section",
      { class: "stack", "aria-labelledby": "demand", "data-key": "demand" },
      h("div", { class: "row" }, h("h2", { id: "demand" }, t("draw.demand")), all.length > 0 && h("div", { class: "row push" }, button("second", t("csv.save"), save))),
      all.length ? h("div", { class: "frame" }, h("table", { class: "table", role: "table", "aria-labelledby": "demand" },
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, column("plan.course"), column("plan.places", "num"), column("draw.wishes", "num"), column("draw.first", "num"))),
        h("tbody", { role: "rowgroup" }, all.map((/** @type {any} */ each) => h("tr", { role: "row", "data-key": each.slotId }, h("th", { role: "rowheader", scope: "row" }, h("a", { href: `#/course/${each.slotId}` }, each.slot?.title ?? "–")), cell("plan.places", number(each.slot?.capacity ?? 0)), cell("draw.wishes", number(each.wishes)), cell("draw.first", number(each.firstWishes))))))) : h("p", { class: "soft" }, t("draw.noWishes")),
    );
  }

  function previewSection() {
    return h(
      "section",
      { class: "stack", "aria-labelledby": "preview", "data-key": "preview" },
      h("h2", { id: "preview" }, t("draw.preview")),
      previewForm.render(t("draw.whatIf"), [
        h("p", null, t("draw.previewHelp")),
        !data.draw.seed && previewForm.field("seed", t("draw.seed"), { maxlength: 500, autocomplete: "off" }),
        previewForm.field("maxBookings", t("draw.maxBookings"), { type: "number", min: 0, inputmode: "numeric" }),
      ], { submit: isPreviewing ? t("form.sending") : t("draw.showPreview"), onsubmit: showPreview }),
      preview?.code ? h("p", { class: "error" }, icon("warning"), h("span", null, errorText(preview.code))) : preview && [measures(), previewedSlots()],
    );
  }

  function measures() {
    return h("div", { class: "frame" }, h("table", { class: "table", role: "table", "aria-labelledby": "preview" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, column("draw.method"), column("draw.without", "num"), column("draw.places", "num"), column("draw.rank", "num"), column("draw.envious", "num"))),
      h("tbody", { role: "rowgroup" }, preview.measures.map((/** @type {any} */ each) => h("tr", { role: "row", "data-key": each.method }, h("th", { role: "rowheader", scope: "row" }, t(`draw.${each.method}`)), cell("draw.without", `${number(each.withoutPlace)} / ${number(each.users)}`), cell("draw.places", number(each.places)), cell("draw.rank", each.averageRank === null ? "–" : number(Math.round(each.averageRank * 100) / 100)), cell("draw.envious", number(each.envious)))))));
  }

  /** A field for another number of places in the preview. @param {any} slot */
  function places(slot) {
    const oninput = (/** @type {any} */ event) => (whatIf[slot.slotId] = event.target.value);
    return h("td", { role: "cell", class: "num", "data-label": t("plan.places") }, h("input", { class: "input fit", type: "number", min: 0, inputmode: "numeric", "aria-label": `${t("plan.places")}${t("whose", { name: slot.title })}`, value: whatIf[slot.slotId] ?? String(slot.capacity), "data-controlled": true, oninput }));
  }

  function previewedSlots() {
    return h("div", { class: "frame" }, h("table", { class: "table", role: "table", "aria-label": t("plan.courses") },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, column("plan.course"), column("plan.places", "num"), column("plan.taken", "num"), column("draw.refused", "num"))),
      h("tbody", { role: "rowgroup" }, preview.slots.map((/** @type {any} */ each) => h("tr", { role: "row", "data-key": each.slotId }, h("th", { role: "rowheader", scope: "row" }, each.title), places(each), cell("plan.taken", number(each.booked + each.granted)), cell("draw.refused", number(each.refused)))))));
  }

  return {
    title: () => t("draw.title"),
    render: () => [
      h("div", { class: "stack tight" }, h("p", null, h("a", { href: `#/plan/${campaignId}` }, data?.campaign?.name ?? t("orga.title"))), h("h1", null, t("draw.title"))),
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
