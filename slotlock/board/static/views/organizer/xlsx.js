// @ts-check
/** Reads the first sheet of an Excel workbook (ECMA-376: XML files in a zip file) as CSV. */

const END_OF_DIRECTORY = 0x06054b50;
const DEFLATED = 8;
const DAY_S = 86_400;
/** What a workbook counts its days from, how many days later an old one of a Mac does, and the first day after the year 9999. */
const FIRST_DAY = Date.UTC(1899, 11, 30);
const DAYS_TO_1904 = 1462;
const END_OF_DAYS = 2_958_466;
/** The formats without a code of their own that show a date, and those that show a time. */
const DATES = /^(?:1[4-7]|22|2[7-9]|3[016]|5\d)$/;
const TIMES = /^(?:1[89]|2[0-2]|3[2-5]|4[5-7])$/;

/** Where a server takes away the apostrophe before a formula: that of a workbook is a part of the text. */
const FORMULA = /(^|;)(?='*\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t])/g;

/** Whether a file is a zip file, as workbooks are. @param {ArrayBuffer} file */
export function isWorkbook(file) {
  return file.byteLength > 22 && new DataView(file).getUint32(0, true) === 0x04034b50;
}

/**
 * Return the first sheet as CSV, in which each row has the line of its number. A line end within a cell is U+2028,
 * and dates and times are those of ISO 8601.
 * @param {ArrayBuffer} file
 * @returns {Promise<string>} throws if it is no workbook that this browser can read
 */
export async function workbookToCsv(file) {
  const read = directory(file);
  const book = parse(await read("xl/workbook.xml"));
  const attributes = [.../** @type {Element} */ (book.querySelector("sheet")).attributes];
  const id = attributes.find((each) => each.localName === "id")?.value;
  const links = parse(await read("xl/_rels/workbook.xml.rels"));
  const target = links.querySelector(`[Id="${id}"]`)?.getAttribute("Target") ?? "";
  const sheet = parse(await read(target.startsWith("/") ? target.slice(1) : `xl/${target}`));
  const strings = parse(await read("xl/sharedStrings.xml").catch(() => "<sst/>"));
  const shared = [...strings.querySelectorAll("si")].map(textOf);
  const firstDay = /^(1|true)$/.test(book.querySelector("workbookPr")?.getAttribute("date1904") ?? "") ? DAYS_TO_1904 : 0;
  const writers = writersOf(parse(await read("xl/styles.xml").catch(() => "<styleSheet/>")), firstDay);
  /** @type {string[][]} */
  const rows = [];
  for (const row of sheet.querySelectorAll("row")) {
    const number = Number(row.getAttribute("r") ?? rows.length + 1);
    while (rows.length < number) rows.push([]);
    const cells = rows[number - 1];
    for (const cell of row.querySelectorAll("c")) {
      const column = columnOf(cell.getAttribute("r")) ?? cells.length;
      while (cells.length < column) cells.push("");
      const value = cell.querySelector("v")?.textContent ?? "";
      const type = cell.getAttribute("t") ?? "n";
      const write = type === "n" && value && writers[Number(cell.getAttribute("s"))];
      cells[column] = type === "s" ? (shared[Number(value)] ?? "") : write ? write(value) : value || textOf(cell);
    }
  }
  const width = Math.max(...rows.map((cells) => cells.length));
  const quote = (/** @type {string} */ text) => `"${text.replace(/\r\n?|\n/g, "\u2028").replace(FORMULA, "$1'").replace(/"/g, '""')}"`;
  const line = (/** @type {string[]} */ cells) => (cells.some(Boolean)
    ? Array.from({ length: width }, (_, column) => quote(cells[column] ?? "")).join(",")
    : "");
  return rows.map(line).join("\n");
}

/** Return the text of a string, without how it is pronounced; _x000D_ is a sign that XML cannot have. @param {Element} element */
function textOf(element) {
  const text = [...element.querySelectorAll(":not(rPh) > t")].map((each) => each.textContent).join("");
  return text.replace(/_x([\da-f]{4})_/gi, (_, code) => String.fromCharCode(Number(`0x${code}`)));
}

/**
 * Return for each style of cells what writes a number as the workbook shows it: a date, a time, or 0012; null for other numbers.
 * @param {Document} styles @param {number} firstDay
 */
function writersOf(styles, firstDay) {
  const codes = new Map([...styles.querySelectorAll("numFmt")].map((each) => [each.getAttribute("numFmtId"), each.getAttribute("formatCode") ?? ""]));
  return [...styles.querySelectorAll("cellXfs > xf")].map((each) => {
    const id = each.getAttribute("numFmtId") ?? "";
    // Without texts, colors and languages, and without what is shown for other numbers.
    const code = (codes.get(id) ?? "").replace(/"[^"]*"|\\.|[_*].|\[(?!h+]|m+]|s+])[^\]]*\]/gi, "").split(";")[0];
    const hasTime = code ? /[hs]/i.test(code) : TIMES.test(id);
    const hasDate = code ? /[yd]/i.test(code) || (!hasTime && /m/i.test(code)) : DATES.test(id);
    if (/^0+$/.test(code)) return (/** @type {string} */ value) => value.padStart(code.length, "0");
    return hasDate || hasTime ? (/** @type {string} */ value) => {
      const days = Number(value) + firstDay;
      if (!(days >= 0 && days < END_OF_DAYS)) return value;
      const seconds = Math.round(days * DAY_S);
      const at = new Date(FIRST_DAY + seconds * 1000).toISOString();
      const [day, time] = [at.slice(0, 10), at.slice(11, 19)];
      return days < 1 || !hasDate ? time : hasTime && seconds % DAY_S ? `${day} ${time}` : day;
    } : null;
  });
}

/** Return the index of a column: 0 of A1, 27 of AB3. @param {string | null} reference */
function columnOf(reference) {
  const letters = /^[A-Z]{1,3}/.exec(reference ?? "")?.[0];
  return letters ? [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1 : null;
}

/** The policy of the page lets each of its names be used once. @type {any} */
let xmlPolicy;

/** Parse XML, which no page ever contains, so that nothing in it can run. @param {string} text */
function parse(text) {
  xmlPolicy ??= /** @type {any} */ (globalThis).trustedTypes?.createPolicy("slotlock-xml", { createHTML: (/** @type {string} */ xml) => xml });
  return new DOMParser().parseFromString(xmlPolicy?.createHTML(text) ?? text, "application/xml");
}

/** Read the directory at the end of a zip file; returns what reads a file by its name. @param {ArrayBuffer} file */
function directory(file) {
  const view = new DataView(file);
  let end = file.byteLength - 22;
  while (view.getUint32(end, true) !== END_OF_DIRECTORY) end -= 1; // a comment may follow
  /** @type {Map<string, {method: number, data: ArrayBuffer}>} */
  const files = new Map();
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left -= 1) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(file, at + 46, nameLength));
    files.set(name, { method: view.getUint16(at + 10, true), data: file.slice(start, start + view.getUint32(at + 20, true)) });
    at += 46 + nameLength + extraLength + commentLength;
  }
  return async (/** @type {string} */ name) => {
    const found = files.get(name);
    if (!found) throw new Error(`no ${name}`);
    const stream = new Blob([found.data]).stream();
    return new Response(found.method === DEFLATED ? stream.pipeThrough(new DecompressionStream("deflate-raw")) : stream).text();
  };
}
