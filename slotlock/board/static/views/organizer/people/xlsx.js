// @ts-check
/** Reads the first sheet of an Excel workbook (ECMA-376: XML files in a zip file) as CSV. */

const END_OF_DIRECTORY = 0x06054b50;
const DEFLATED = 8;

/** Whether a file is a zip file, as workbooks are. @param {ArrayBuffer} file */
export function isWorkbook(file) {
  return file.byteLength > 22 && new DataView(file).getUint32(0, true) === 0x04034b50;
}

/**
 * Return the first sheet as CSV, in which each row has the line of its number.
 * @param {ArrayBuffer} file
 * @returns {Promise<string>} throws if it is no workbook that this browser can read
 */
export async function workbookToCsv(file) {
  const read = directory(file);
  const attributes = [.../** @type {Element} */ (parse(await read("xl/workbook.xml")).querySelector("sheet")).attributes];
  const id = attributes.find((each) => each.localName === "id")?.value;
  const links = parse(await read("xl/_rels/workbook.xml.rels"));
  const target = links.querySelector(`[Id="${id}"]`)?.getAttribute("Target") ?? "";
  const sheet = parse(await read(target.startsWith("/") ? target.slice(1) : `xl/${target}`));
  const strings = parse(await read("xl/sharedStrings.xml").catch(() => "<sst/>"));
  const shared = [...strings.querySelectorAll("si")].map(textOf);
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
      cells[column] = cell.getAttribute("t") === "s" ? (shared[Number(value)] ?? "") : value || textOf(cell);
    }
  }
  const width = Math.max(...rows.map((cells) => cells.length));
  const quote = (/** @type {string} */ text) => `"${text.replace(/[\r\n]+/g, " ").replace(/"/g, '""')}"`;
  const line = (/** @type {string[]} */ cells) => (cells.some(Boolean)
    ? Array.from({ length: width }, (_, column) => quote(cells[column] ?? "")).join(",")
    : "");
  return rows.map(line).join("\n");
}

/** Return the text of a string, without how it is pronounced. @param {Element} element */
function textOf(element) {
  return [...element.querySelectorAll(":not(rPh) > t")].map((each) => each.textContent).join("");
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
