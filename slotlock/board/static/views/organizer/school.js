// @ts-check
/** What the site shows of the school. Admins change it, and see it on this page before everybody else does. */
import { say, site } from "../../page.js";
import { codeOf, me, run } from "../../client.js";
import { h, redraw } from "../../kernel.js";
import { bones, button, failure, notice, section } from "../../parts.js";
import { readerOf } from "../../store.js";
import { LANGUAGES, deviceZone, language, learnZone, t } from "../../text.js";
import { Form } from "./forms/form.js";
import { isZone, whenOf } from "./forms/localtime.js";
import { mailText } from "./mail.js";

/** The one of a page without a color. */
const STANDARD_COLOR = "#2a3bb7";
const SHOWN_MAIL = "booked";
/** The one of a site that has set none. */
const NO_ZONE = "UTC";
/** Twice as large as a page shows a logo, in pixels. */
const LOGO_WIDTH = 256;
const LOGO_HEIGHT = 64;
const WEB_ADDRESS = { type: "url", inputmode: "url", read: readAddress };
/** @type {import("./forms/form.js").Field[]} */
const SITE_FIELDS = [
  { name: "name", maxlength: 100 },
  { name: "logo", show: logoField },
  { name: "color", type: "color", class: "input color", show: colorField },
  { name: "locale", show: languageField },
  { name: "formOfAddress", show: addressField },
  { name: "mailClosing", tag: "textarea", rows: 3, maxlength: 300, ofMail: true, read: readClosing },
  { name: "timeZone", list: "zones", autocomplete: "off", read: readSiteZone },
  { name: "imprintUrl", ...WEB_ADDRESS },
  { name: "privacyUrl", ...WEB_ADDRESS },
];

/** Return an address, to which people add no https. @param {Form} form @param {any} field */
function readAddress(form, { name }) {
  const text = form.text(name);
  return text && (/^\w+:/.test(text) ? text : `https://${text}`);
}

/** @param {Form} form @param {any} field */
function readSiteZone(form, { name }) {
  const text = form.text(name);
  return !text || isZone(text) ? text : form.fail(name, t("slotForm.unknownZone"));
}

/** Return a text of several lines as one line. @param {Form} form @param {any} field */
function readClosing(form, { name }) {
  return form.text(name)?.replace(/\s+/g, " ") ?? null;
}

/** @param {Form} form @param {any} field */
function logoField(form, { name }) {
  const [id, help] = [form.id(name), form.help(name)];
  const onchange = async (/** @type {any} */ event) => {
    const image = await shrunk(event.target.files[0]).catch(() => "");
    if (image) form.set(name, image);
    else form.fail(name, t("problem.NOT_AN_IMAGE"));
    redraw();
  };
  const accept = "image/png,image/jpeg,image/webp";
  return form.wrap(
    name,
    h("label", { for: id }, form.label(name)),
    h("input", { class: "input", id, type: "file", accept, ...form.described(name, help), onchange }),
    help,
  );
}

/** Return an image as a PNG in Base64, not larger than the page shows it on a fine screen. @param {Blob} file */
async function shrunk(file) {
  const image = await createImageBitmap(file);
  const scale = Math.min(1, LOGO_WIDTH / image.width, LOGO_HEIGHT / image.height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(image.width * scale);
  canvas.height = Math.ceil(image.height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png").split(",")[1];
}

/** @param {Form} form @param {any} field */
function colorField(form, { name, ...others }) {
  return form.field(name, { ...others, value: form.values[name] || others.placeholder || STANDARD_COLOR });
}

/** @param {Form} form @param {any} field */
function languageField(form, { name, placeholder, ...others }) {
  const none = placeholder ? t("school.ofSettings", { value: valueText(name, placeholder) }) : t("school.noLocale");
  return form.select(name, [["", none], ...Object.entries(LANGUAGES)], others);
}

/** @param {Form} form @param {any} field */
function addressField(form, { name, ...others }) {
  return form.select(name, [["", t("school.INFORMAL")], ["FORMAL", t("school.FORMAL")]], others);
}

/** @param {string} field @param {string | null} value */
function valueText(field, value) {
  if (field === "logoUrl" && value) return t("history.value.true");
  if (field === "formOfAddress") return t(`school.${(value ?? "INFORMAL").toUpperCase()}`);
  return (field === "locale" && value && /** @type {any} */ (LANGUAGES)[value.slice(0, 2)]) || value || "–";
}

/** Show the page in a color, as the server makes it readable. @param {string} color */
async function showColor(color) {
  const response = await fetch(`/board/style/${color.slice(1)}.css`).catch(() => null);
  for (const [, name, value] of ((response?.ok && (await response.text())) || "").matchAll(/(--[\w-]+): (#\w+)/g))
    document.documentElement.style.setProperty(name, value);
}

export function openSchool() {
  /** What the school set, what its settings say, and what holds. @type {any} */
  let own = null;
  /** @type {any} */
  let settings = null;
  /** @type {any} */
  let current = null;
  /** @type {any[]} */
  let log = [];
  /** @type {any} */
  let mail = null;
  /** What neither the school nor its settings say, as this device has it. @type {Record<string, any>} */
  let proposed = {};
  let isSaved = false;
  let isColored = false;
  /** @type {Form} */
  let form;
  const isAdmin = me?.role === "ADMIN";

  const load = readerOf(async () => {
    const found = await run("siteSetup");
    take(found.siteSetup);
    log = found.auditLog.nodes;
    preview();
  });
  load();

  /** @param {any} setup */
  function take(setup) {
    ({ own, settings } = setup);
    current = { ...settings, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value)) };
    const fields = SITE_FIELDS.map((field) => ({ onchange: preview, placeholder: settings[field.name], ...field }));
    const ofDevice = { locale: !settings.locale && language, timeZone: settings.timeZone === NO_ZONE && deviceZone !== NO_ZONE && deviceZone };
    proposed = Object.fromEntries(Object.entries(ofDevice).filter(([name, value]) => value && !own[name]));
    form = new Form("school", { ...proposed }, fields, own).keep();
    Object.assign(site, current); // for the frame of this page, and for the next forms
    learnZone({ timeZone: deviceZone });
  }

  /** Return what was typed or proposed, as the API takes it. */
  function changes() {
    const input = form.input();
    return Object.fromEntries(Object.keys({ ...proposed, ...form.typed }).map((name) => [name, input[name]]));
  }

  /** Show what was typed on this page, before it is saved. */
  async function preview() {
    const { name, color, locale, formOfAddress } = form.values;
    site.name = name?.trim() || settings.name;
    if (isColored || "color" in form.typed) {
      isColored = true;
      showColor(color || settings.color || STANDARD_COLOR);
    }
    redraw();
    if (!site.sendsMail) return;
    const lang = (locale || settings.locale || language).slice(0, 2);
    const changed = { name: name || null, mailClosing: readClosing(form, { name: "mailClosing" }), formOfAddress: formOfAddress || null };
    const found = await run("mailPreviews", { locale: lang, site: changed }).catch(codeOf);
    const shown = found.mailPreviews?.find((/** @type {any} */ each) => each.kind === SHOWN_MAIL);
    if (shown) mail = { ...shown, lang };
    redraw();
  }

  async function submit() {
    const saved = await form.send("updateSite", () => ({ input: changes() }));
    if (!saved) return;
    form.forget();
    isSaved = true;
    say(t("school.saved"));
    await load();
  }

  function fields() {
    const zones = /** @type {any} */ (Intl).supportedValuesOf?.("timeZone") ?? [];
    return [
      form.show("name", "logo"),
      own.logoUrl && form.typed.logo === undefined && h("p", null, button("plain", t("school.removeLogo"), () => {
        form.set("logo", "");
        redraw();
      })),
      form.show("color"),
      form.values.color && h("p", null, button("plain", t("school.standardColor"), () => {
        form.set("color", "");
        preview();
      })),
      form.show(["locale", "formOfAddress"], "mailClosing", "timeZone", "imprintUrl", "privacyUrl"),
      h("datalist", { id: "zones" }, zones.map((/** @type {string} */ zone) => h("option", { value: zone }))),
    ];
  }

  /** @param {any} entry */
  function change({ at, by, edits }) {
    const texts = edits.map((/** @type {any} */ { field, before, after }) =>
      t("history.edit", { field: t(`school.${field}`), before: valueText(field, before), after: valueText(field, after) }));
    return h("li", null, h("time", { datetime: at }, whenOf(at, deviceZone)), h("span", null, [by?.name, ...texts].filter(Boolean).join(" · ")));
  }

  function readOnly() {
    const shown = SITE_FIELDS.filter(({ name }) => name !== "logo");
    const facts = shown.flatMap(({ name }) => [h("dt", null, t(`school.${name}`)), h("dd", null, valueText(name, current[name]))]);
    return [h("h1", null, t("school.title")), h("p", { class: "soft" }, t("school.adminsOnly")), h("dl", { class: "facts" }, facts)];
  }

  function render() {
    if (!own) return [load.error ? failure(load.error, load) : bones(5)];
    return [
      h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
      isAdmin
        ? form.render(t("school.title"), [h("p", { class: "soft" }, t("school.help")), ...fields()], {
            level: "h1",
            onsubmit: submit,
            more: isSaved && !form.isTyped && notice("yours", "tick", t("school.saved")),
          })
        : readOnly(),
      mail && section("mail", t("school.mail"), [mailText(mail, mail.lang)]),
      log.length > 0 && section("log", t("history.title"), [h("ol", { class: "log long" }, log.map(change))]),
    ];
  }

  return {
    title: () => t("school.title"),
    render,
    leave() {
      if (!current) return;
      site.name = current.name;
      if (isColored) showColor(current.color || STANDARD_COLOR);
    },
  };
}
