// @ts-check
/** Webhooks: a list, a form, the secret once, and the messages with what became of them. */
import { me, newKey, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, button, checkbox, failure, hidden, notice } from "../../parts.js";
import { opening } from "../../slotstate.js";
import { readAll, readerOf } from "../../store.js";
import { commas, deviceZone, t } from "../../text.js";
import { Actions } from "./forms/actions.js";
import { Form } from "./forms/form.js";
import { pages } from "./pages.js";
import { about } from "./parts.js";
import { copyButton } from "./people/parts.js";
import { STATE_TAGS } from "./people/progress.js";

const EVENTS = [
  "BOOKING_CONFIRMED",
  "BOOKING_HELD",
  "BOOKING_MOVED",
  "BOOKING_CANCELLED",
  "BOOKING_EXPIRED",
  "BOOKING_PROMOTED",
  "BOOKING_CHECKED_IN",
  "BOOKING_NO_SHOW",
  "WAITLIST_JOINED",
  "WAITLIST_LEFT",
  "SLOT_PUBLISHED",
  "SLOT_EDITED",
  "SLOT_CANCELLED",
  "SLOT_FULL",
  "CAMPAIGN_PUBLISHED",
  "CAMPAIGN_OPENED",
  "CAMPAIGN_CLOSED",
  "DRAW_CLOSED",
  "DRAW_PUBLISHED",
  "USER_CREATED",
  "USER_ERASED",
];
/** How many messages are read at once. */
const WEBHOOKS_PAGE = 50;

export function openWebhooks() {
  /** @type {any[] | null} */
  let webhooks = null;
  /** @type {any[]} */
  let campaigns = [];
  /** The result with the secret that was created last: nobody can read it a second time. @type {any} */
  let created = null;
  /** The webhook that is changed; null for a new one. @type {any} */
  let changed = null;
  /** @type {Form | null} */
  let form = null;
  /** The webhook whose messages are shown, and these. @type {{id: string, messages: ReturnType<typeof pages>} | null} */
  let shown = null;
  const actions = new Actions();

  const load = readerOf(async () => {
    campaigns = (await readAll("campaigns", {}, "campaigns")) ?? [];
    webhooks = (await run("webhooks")).webhooks;
  });
  load();

  /** Show the messages of a webhook. @param {string} id "" to close */
  function show(id) {
    shown?.messages.leave();
    const read = async (/** @type {string | null} */ after) => (await run("webhookDeliveries", { id, first: WEBHOOKS_PAGE, after })).node?.deliveries;
    shown = id ? { id, messages: pages(read, isMoving) } : null;
    redraw();
  }

  /** @param {any} webhook null for a new one */
  function edit(webhook) {
    changed = webhook;
    form = new Form("webhooks", {
      url: webhook?.url ?? "",
      campaignId: webhook?.campaign?.id ?? (me?.role === "ADMIN" ? "" : campaigns[0]?.id ?? ""),
      events: webhook?.events ?? [],
    });
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
      return { input: {
        url: current.text("url"),
        events,
        ...(changed ? { webhookId: changed.id } : { campaignId: campaignId || null, idempotencyKey: current.key }),
      } };
    });
    if (!saved) return;
    if (saved.secret) created = saved;
    await load();
    close();
  }

  /** @param {string} key @param {string} name @param {Record<string, any>} variables @param {string} [said] */
  async function change(key, name, variables, said) {
    const result = await actions.run(key, name, variables, said);
    if (result?.secret) created = result;
    if (result) await load();
    return result;
  }

  /** @param {Form} current */
  function eventField(current) {
    const chosen = new Set(current.values.events);
    const usable = EVENTS.filter((event) => !current.values.campaignId || !event.startsWith("USER_"));
    return current.wrap("events", null, h(
      "fieldset",
      { class: "stack tight", ...current.described("events", "") },
      h("legend", null, h("strong", null, t("webhooks.events"))),
      h("div", { class: "row" }, usable.map((event) => checkbox("chip", nameOf(event), { checked: chosen.has(event) }, (isChecked) => {
        chosen[isChecked ? "add" : "delete"](event);
        current.set("events", [...chosen]);
      }))),
    ), null);
  }

  /** @param {Form} current */
  function formOf(current) {
    const everywhere = me?.role === "ADMIN" ? [["", t("webhooks.wholeSite")]] : [];
    const choices = /** @type {Array<[string, string]>} */ ([...everywhere, ...campaigns.map((each) => [each.id, each.name])]);
    return current.render(changed ? t("webhooks.change") : t("webhooks.create"), [
      current.field("url", { type: "url", required: true, maxlength: 500, autocomplete: "off" }),
      !changed && current.select("campaignId", choices, { label: t("place.campaign") }),
      eventField(current),
    ], { submit: t("form.save"), onsubmit: submit, oncancel: close });
  }

  /** @param {any} webhook */
  function entry(webhook) {
    const { id, url, disabledAt } = webhook;
    const isShown = shown?.id === id;
    const label = (/** @type {string} */ text) => [text, hidden(`: ${url}`)];
    return h(
      "li",
      { class: "stack", "data-key": id },
      about([h("strong", { class: "letters" }, url), " ", webhookTag(webhook)], [
        webhook.campaign?.name ?? t("webhooks.wholeSite"),
        commas(webhook.events.map(nameOf)),
      ]),
      webhook.disabledReason && h("p", { class: "soft" }, t("webhooks.lastResponse", { reason: webhook.disabledReason })),
      created?.webhook.id === id && notice(
        "wait",
        "lock",
        [t("webhooks.secretOnce"), h("br"), h("code", { class: "letters" }, created.secret)],
        copyButton(created.secret, url),
      ),
      h("div", { class: "row" },
        button("second", label(t("webhooks.deliveries")), () => show(isShown ? "" : id), { "aria-expanded": String(isShown) }),
        actions.button(
          `ping ${id}`,
          "second",
          label(t("webhooks.ping")),
          async () => (await change(`ping ${id}`, "pingWebhook", { id }, t("webhooks.pinged"))) && show(id),
        ),
        button("plain", label(t("course.edit")), () => edit(webhook)),
        actions.button(
          `enable ${id}`,
          "plain",
          label(t(disabledAt ? "webhooks.enable" : "webhooks.disable")),
          () => change(`enable ${id}`, "updateWebhook", { input: { webhookId: id, enabled: Boolean(disabledAt) } }),
        )),
      h("div", { class: "row" },
        actions.askingButton(
          `rotate ${id}`,
          label(t("webhooks.rotate")),
          t("webhooks.rotateQuestion"),
          t("webhooks.rotate"),
          () => change(`rotate ${id}`, "rotateWebhookSecret", { id, key: newKey() }),
        ),
        actions.askingButton(
          id,
          label(t("form.delete")),
          t("webhooks.deleteQuestion"),
          t("form.delete"),
          () => change(id, "deleteWebhook", { id }, t("webhooks.deleted")),
        )),
      actions.problem(`ping ${id}`), actions.problem(`enable ${id}`),
      isShown && shown?.messages.render(messageRow, h("p", { class: "soft" }, t("webhooks.noDeliveries")), t("webhooks.older")),
    );
  }

  /** @param {any} message */
  function messageRow(message) {
    const { deliveryId: key, type, state, attempts: count, durationMs: ms, nextAttemptAt } = message;
    const facts = [
      opening(Date.parse(message.at), deviceZone),
      t("webhooks.attempts", { count }),
      message.note,
      ms !== null && t("webhooks.took", { ms }),
      nextAttemptAt && count > 0 && t("webhooks.next", { time: opening(Date.parse(nextAttemptAt), deviceZone) }),
    ];
    const redeliver = async () => (await change(key, "redeliverWebhook", { id: key }, t("mail.retried"))) && shown?.messages.load();
    const build = () => h(
      "li",
      { "data-key": key },
      about([h("strong", null, type), " ", h("span", { class: `tag ${STATE_TAGS[state]}` }, t(`webhooks.state.${state}`))], facts),
      h("div", { class: "row" }, state !== "SENDING" && actions.button(key, "plain", [t("mail.retry"), hidden(`: ${type}`)], redeliver)),
      actions.problem(key),
    );
    return { key, signature: JSON.stringify([message, actions.running === key, actions.problems.has(key)]), build };
  }

  return {
    title: () => t("webhooks.title"),
    render() {
      return [
        h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
        h(
          "div",
          { class: "row" },
          h("h1", null, t("webhooks.title")),
          webhooks && h("div", { class: "row push" }, button("", t("webhooks.create"), () => edit(null))),
        ),
        h("p", { class: "soft" }, t("webhooks.help")),
        form && formOf(form),
        load.error && !webhooks
          ? failure(load.error, load)
          : !webhooks ? bones(2) : webhooks.length ? h("ul", { class: "frame list" }, webhooks.map(entry)) : notice("", "list", t("webhooks.none")),
      ];
    },
    leave: () => shown?.messages.leave(),
  };
}

/** Whether a message will change by itself. @param {any} message */
function isMoving({ state, attempts }) {
  return state === "SENDING" || (state === "QUEUED" && !attempts);
}

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
