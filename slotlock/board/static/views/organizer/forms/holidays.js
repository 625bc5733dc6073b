// @ts-check
/** Lists of holidays that all organizers share: a choice in forms, and a page to enter them. */
import { h, redraw } from "../../../kernel.js";
import { button, whose } from "../../../parts.js";
import { dayOf, t } from "../../../text.js";
import { Actions } from "./actions.js";
import { Form } from "./form.js";
import { readByName } from "./resources.js";

/** All lists by name; null until they are read. @type {any[] | null} */
let lists = null;

/** Read all lists again. */
export async function loadHolidayLists() {
  lists = (await readByName("holidayLists")) ?? lists;
  redraw();
}

/** Return the choice of a list for a form, if there is one. @param {Form} form */
export function holidayField(form) {
  if (!lists?.length) return null;
  return form.select(
    "holidayListId",
    [["", t("holidays.none")], ...lists.map((each) => /** @type {[string, string]} */ ([each.id, each.name]))],
    { label: t("holidays.list") },
  );
}

/** Return whether a day is in a list. @param {string} listId @param {string} day */
export function isHoliday(listId, day) {
  return Boolean(lists?.find((each) => each.id === listId)?.holidays.some((/** @type {any} */ each) => each.first <= day && day <= each.last));
}

/** Say which dates were skipped. @param {string[]} dates */
export function skippedHolidays(dates) {
  return dates.length > 0 && h("p", null, t("holidays.skipped", { count: dates.length, days: dates.map(dayName).join("; ") }));
}

/** Return a date as people write it. @param {string} day */
export function dayName(day) {
  return dayOf(`${day}T12:00:00Z`, "UTC");
}

/** @param {any} holiday */
function spanOf({ first, last, name }) {
  return [name, first === last ? dayName(first) : `${dayName(first)} – ${dayName(last)}`].filter(Boolean).join(": ");
}

export function openHolidays() {
  /** The list that is changed, or null for a new one. @type {any} */
  let changed = null;
  let form = newForm(null);
  const actions = new Actions();

  /** @param {any} holidayList */
  function newForm(holidayList) {
    return new Form("holidays", {
      name: holidayList?.name ?? "",
      ics: "",
      holidays: (holidayList?.holidays ?? []).map((/** @type {any} */ each) => ({ ...each })),
    });
  }

  loadHolidayLists();

  /** @param {any} holidayList */
  function change(holidayList) {
    changed = holidayList;
    form = newForm(holidayList);
    redraw();
    if (holidayList) form.focusFirst();
  }

  async function submit() {
    const saved = await form.send(changed ? "updateHolidayList" : "createHolidayList", () => {
      const { ics } = form.values;
      const holidays = form.values.holidays.filter((/** @type {any} */ row) => row.first).map((/** @type {any} */ row) => ({
        first: row.first,
        last: row.last || row.first,
        name: row.name,
      }));
      if (!ics && !holidays.length) form.missing("holidays");
      return { input: { name: form.text("name", true), ...(ics ? { ics } : { holidays }), ...(changed && { holidayListId: changed.id }) } };
    });
    if (!saved) return;
    change(null);
    await loadHolidayLists();
  }

  /** @param {any} holidayList */
  async function remove(holidayList) {
    if (await actions.run(holidayList.id, "deleteHolidayList", { id: holidayList.id }, t("resources.deleted", { name: holidayList.name })))
      await loadHolidayLists();
  }

  function render() {
    const [id, help] = [form.id("file"), form.help("file")];
    const fields = [
      form.field("name", { maxlength: 100 }),
      !form.values.ics && form.rows("holidays", t("holidays.add"), () => ({ first: "", last: "", name: "" }), {
        first: { type: "date", label: t("slotForm.first") },
        last: { type: "date", label: t("slotForm.last") },
        name: { label: t("holidays.holiday") },
      }, { label: t("holidays.days") }),
      form.wrap(
        "file",
        h("label", { for: id }, form.label("file")),
        h("input", {
          class: "input",
          id,
          type: "file",
          accept: ".ics,text/calendar",
          ...form.described("file", help),
          onchange: async (/** @type {any} */ event) => {
            form.set("ics", (await event.target.files[0]?.text()) ?? "");
            redraw();
          },
        }),
        help,
      ),
    ];
    const title = changed ? t("holidays.change", { name: changed.name }) : t("holidays.create");
    return [
      h("p", null, h("a", { href: "#/organizer" }, t("orga.title"))),
      h("h1", null, t("holidays.title")),
      form.render(title, fields, { onsubmit: submit, oncancel: changed ? () => change(null) : undefined }),
      lists && lists.length > 0 && h("ul", { class: "frame list" }, lists.map((each) => h(
        "li",
        { "data-key": each.id },
        h("p", null, h("strong", null, each.name), h("br"), h("span", { class: "soft" }, each.holidays.map(spanOf).join(" · "))),
        h("div", { class: "row" },
          button("plain", [t("course.edit"), whose(each.name)], () => change(each)),
          actions.askingButton(
            each.id,
            [t("form.delete"), whose(each.name)],
            t("holidays.deleteQuestion", { name: each.name }),
            t("form.delete"),
            () => remove(each),
          )),
      ))),
    ];
  }

  return { title: () => t("holidays.title"), width: /** @type {"wide"} */ ("wide"), render };
}
