// @ts-check
/** Webhooks: a list, a form, the secret once, and the messages with what became of them. */
import { me, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, button, failure, hidden, notice } from "../../parts.js";
import { opening } from "../../rows.js";
import { oneAtATime, readAll } from "../../store.js";
import { deviceZone, t } from "../../text.js";
import { Actions } from "./forms/actions.js";
import { Form } from "./forms/form.js";
import { copyButton } from "./people/parts.js";

const EVENTS = ["BOOKING_CONFIRMED", "BOOKING_HELD", "BOOKING_MOVED", "BOOKING_CANCELLED", "BOOKING_EXPIRED", "BOOKING_PROMOTED", "BOOKING_CHECKED_IN", "BOOKING_NO_SHOW", "WAITLIST_JOINED", "WAITLIST_LEFT", "SLOT_PUBLISHED", "SLOT_EDITED", "SLOT_CANCELLED", "SLOT_FULL", "CAMPAIGN_PUBLISHED", "CAMPAIGN_OPENED", "CAMPAIGN_CLOSED", "DRAW_CLOSED", "DRAW_PUBLISHED", "USER_CREATED", "USER_ERASED"];
/** How many messages are read at once. */
const WEBHOOKS_PAGE = 50;
const READ_WEBHOOKS_AGAIN_MS = 1000;
/** How often messages on their way are read again. */
const READINGS = 10;

export function openWebhooks() {
  /** @type {any[] | null} */
  let webhooks = null;
  /** @type {any[]} */
  let campaigns = [];
  let error = "";
  /** A secret that was created last: nobody can read it a second time. @type {{id: string, secret: string} | null} */
  let created = null;
  /** The webhook that is changed; null for a new one. @type {any} */
  let changed = null;
  /** @type {Form | null} */
  let form = null;
  /** The webhook whose messages are shown, these, how many to show, and whether there are more. @type {{id: string, nodes: any[] | null, wanted: number, hasMore: boolean} | null} */
  let shown = null;
  /** @type {any} */
  let timer;
  const load = oneAtATime(readOnce);
  const actions = new Actions();

  async function readOnce() {
    try {
      campaigns = (await readAll("campaigns", {}, "campaigns")) ?? [];
      webhooks = (await run("webhooks")).webhooks;
      error = "";
    } catch (caught) {
      error = /** @type {any} */ (caught).code ?? "INTERNAL";
    }
    redraw();
  }
  load();

  /** Read the messages of the shown webhook, and again while one is on its way. @param {number} [readings] */
  async function loadDeliveries(readings = READINGS) {
    clearTimeout(timer);
    const current = shown;
    if (!current) return;
    /** @type {any[]} */
    const nodes = [];
    /** @type {any} */
    let page = null;
    do {
      const after = page?.pageInfo.endCursor ?? null;
      const data = await run("webhookDeliveries", { id: current.id, first: WEBHOOKS_PAGE, after }).catch(() => null);
      page = data?.node?.deliveries;
      nodes.push(...(page?.nodes ?? []));
    } while (page?.pageInfo.hasNextPage && nodes.length < current.wanted);
    if (current !== shown) return;
    if (page || !current.nodes) Object.assign(current, { nodes: page ? nodes : null, hasMore: Boolean(page?.pageInfo.hasNextPage) });
    redraw();
    const isMoving = current.nodes?.some((each) => each.state === "SENDING" || (each.state === "QUEUED" && !each.attempts));
    if (isMoving && readings > 0) timer = setTimeout(() => loadDeliveries(readings - 1), READ_WEBHOOKS_AGAIN_MS);
  }

  /** @param {any} webhook null to close */
  function show(webhook) {
    shown = webhook && { id: webhook.id, nodes: null, wanted: WEBHOOKS_PAGE, hasMore: false };
    redraw();
    loadDeliveries();
  }

  function showOlder() {
    if (shown) shown.wanted += WEBHOOKS_PAGE;
    loadDeliveries();
  }

  /** @param {any} webhook null for a new one */
  function edit(webhook) {
    changed = webhook;
    form = new Form("webhooks", { url: webhook?.url ?? "", campaignId: webhook?.campaign?.id ?? (me?.role === "ADMIN" ? "" : campaigns[0]?.id ?? ""), events: webhook?.events ?? [] });
    redraw();
    form.focusFirst();
  }

  function close() {
    form = null;
    redraw();
  }

  async function submit() {
    const current = /** @type {Form} */ (form);
    const saved = await current.send(changed ? "updateWebhook" : "createWebhook", () => {
      const { events, campaignId } = current.values;
      if (!current.text("url")) current.fail("url", t("form.missing"));
      if (!events.length) current.fail("events", t("form.missing"));
      return { input: { url: current.text("url"), events, ...(changed ? { webhookId: changed.id } : { campaignId: campaignId || null, idempotencyKey: current.key }) } };
    });
    if (!saved) return;
    if (saved.secret) created = { id: saved.webhook.id, secret: saved.secret };
    await load();
    close();
  }

  /** @param {string} name @param {string} key @param {Record<string, any>} variables @param {string} [said] */
  async function change(name, key, variables, said) {
    const result = await actions.run(key, name, variables, said);
    if (result?.secret) created = { id: result.webhook.id, secret: result.secret };
    if (result) await load();
    return result;
  }

  /** @param {any} webhook */
  async function ping(webhook) {
    if (await change("pingWebhook", `ping ${webhook.id}`, { id: webhook.id }, t("webhooks.pinged"))) show(webhook);
  }

  /** @param {Form} current */
  function eventField(current) {
    const toggle = (/** @type {string} */ event, /** @type {boolean} */ isWanted) => {
      const others = current.values.events.filter((/** @type {string} */ each) => each !== event);
      current.set("events", isWanted ? [...others, event] : others);
    };
    const usable = EVENTS.filter((event) => !current.values.campaignId || !event.startsWith("USER_"));
    return current.wrap("events", null, h(
      "fieldset",
      { class: "stack tight", ...current.described("events", "") },
      h("legend", null, h("strong", null, t("webhooks.events"))),
      h("div", { class: "row" }, usable.map((event) => h("label", { class: "chip", "data-key": event }, h("input", { type: "checkbox", checked: current.values.events.includes(event), onchange: (/** @type {any} */ changing) => toggle(event, changing.target.checked) }), nameOf(event)))),
    ), null);
  }

  /** @param {Form} current */
  function formOf(current) {
    const everywhere = me?.role === "ADMIN" ? [["", t("webhooks.wholeSite")]] : [];
    const choices = /** @type {Array<[string, string]>} */ ([...everywhere, ...campaigns.map((each) => [each.id, each.name])]);
    return current.render(changed ? t("webhooks.change") : t("webhooks.create"), [
      current.field("url", { type: "url", required: true, maxlength: 500, autocomplete: "off" }),
      !changed && current.select("campaignId", choices, { label: t("webhooks.campaign") }),
      eventField(current),
    ], { submit: t("form.save"), onsubmit: submit, oncancel: close });
  }

  /** @param {any} webhook */
  function entry(webhook) {
    const { id, url } = webhook;
    const name = hidden(`: ${url}`);
    const isShown = shown?.id === id;
    const label = (/** @type {string} */ text) => [text, name.cloneNode(true)];
    return h(
      "li",
      { class: "stack", "data-key": id },
      h("p", null, h("strong", { class: "letters" }, url), " ", webhookTag(webhook), h("br"), h("span", { class: "small soft" }, [webhook.campaign?.name ?? t("webhooks.wholeSite"), webhook.events.map(nameOf).join(", ")].join(" · "))),
      webhook.disabledReason && h("p", { class: "soft" }, webhook.disabledReason),
      created?.id === id && notice("wait", "lock", [t("webhooks.secretOnce"), h("br"), h("code", { class: "letters" }, created?.secret)], copyButton(created?.secret ?? "", url)),
      h("div", { class: "row" },
        button("second", label(t("webhooks.deliveries")), () => show(isShown ? null : webhook), { "aria-expanded": String(isShown) }),
        actions.button(`ping ${id}`, "second", label(t("webhooks.ping")), () => ping(webhook)),
        button("plain", label(t("course.edit")), () => edit(webhook)),
        actions.button(`enable ${id}`, "plain", label(t(webhook.disabledAt ? "webhooks.enable" : "webhooks.disable")), () => change("updateWebhook", `enable ${id}`, { input: { webhookId: id, enabled: Boolean(webhook.disabledAt) } }))),
      h("div", { class: "row" },
        actions.askingButton(`rotate ${id}`, label(t("webhooks.rotate")), t("webhooks.rotateQuestion"), t("webhooks.rotate"), () => change("rotateWebhookSecret", `rotate ${id}`, { id })),
        actions.askingButton(id, label(t("form.delete")), t("webhooks.deleteQuestion"), t("form.delete"), () => change("deleteWebhook", id, { id }, t("webhooks.deleted")))),
      actions.problem(`ping ${id}`), actions.problem(`enable ${id}`),
      isShown && deliveries(shown?.nodes ?? null),
      isShown && shown?.hasMore && h("p", null, button("second", t("webhooks.older"), showOlder)),
    );
  }

  /** @param {any[] | null} nodes */
  function deliveries(nodes) {
    if (!nodes) return bones(2);
    if (!nodes.length) return h("p", { class: "soft" }, t("webhooks.noDeliveries"));
    return h("ul", { class: "frame list" }, nodes.map((each) => {
      const key = each.deliveryId;
      const facts = [opening(Date.parse(each.at), deviceZone), t("webhooks.attempts", { count: each.attempts }), each.note, each.durationMs !== null && t("webhooks.took", { ms: each.durationMs }), each.nextAttemptAt && each.attempts > 0 && t("webhooks.next", { time: opening(Date.parse(each.nextAttemptAt), deviceZone) })];
      return h(
        "li",
        { "data-key": key },
        h("p", null, h("strong", null, each.type), " ", h("span", { class: `tag ${STATE_KINDS[each.state] ?? ""}`.trim() }, t(`webhooks.state.${each.state}`)), h("br"), h("span", { class: "small soft" }, facts.filter(Boolean).join(" · "))),
        h("div", { class: "row" }, each.state !== "SENDING" && actions.button(key, "plain", [t("webhooks.redeliver"), hidden(`: ${each.type}`)], () => change("redeliverWebhook", key, { id: key }, t("webhooks.redelivered")).then(() => loadDeliveries()))),
        actions.problem(key),
      );
    }));
  }

  return {
    title: () => t("webhooks.title"),
    render() {
      return [
        h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
        h("div", { class: "row" }, h("h1", null, t("webhooks.title")), webhooks && h("div", { class: "row push" }, button("", t("webhooks.create"), () => edit(null)))),
        h("p", { class: "soft" }, t("webhooks.help")),
        form && formOf(form),
        error && !webhooks ? failure(error, load) : !webhooks ? bones(2) : webhooks.length ? h("ul", { class: "frame list" }, webhooks.map(entry)) : notice("", "list", t("webhooks.none")),
      ];
    },
    leave() {
      shown = null;
      clearTimeout(timer);
    },
  };
}

/** The tags of the states of messages. @type {Record<string, string>} */
const STATE_KINDS = { SENT: "yours", FAILED: "stop", QUEUED: "wait", SENDING: "wait", SUPPRESSED: "over" };

/** Return an event as messages have it: `booking.checked_in`. @param {string} event */
function nameOf(event) {
  return event.toLowerCase().replace("_", ".");
}

/** @param {any} webhook */
function webhookTag(webhook) {
  if (webhook.disabledAt) return h("span", { class: "tag stop" }, t("webhooks.disabled"));
  if (webhook.failingSince) return h("span", { class: "tag wait" }, t("webhooks.failing", { time: opening(Date.parse(webhook.failingSince), deviceZone) }));
  return h("span", { class: "tag yours" }, t("webhooks.enabled"));
}
