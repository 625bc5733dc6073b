// @ts-check
/** Files that organizers send and get: the endpoints beside /graphql, and CSV. */
import { RequestError, asMe } from "../../client.js";
import { saveFile } from "../../parts.js";
import { t } from "../../text.js";

/** An import of a large school takes a while. */
const TIMEOUT_MS = 300_000;

/**
 * Send a file or a request to an endpoint for organizers, with the session.
 * @param {string} path
 * @param {Blob} [body]
 * @param {string} [type] of the body
 * @param {number} [timeoutMs]
 * @param {"POST" | "GET"} [method]
 * @returns {Promise<{ok: boolean, status: number, text: string, content: Blob}>}
 */
export async function post(path, body, type = "text/csv", timeoutMs = TIMEOUT_MS, method = "POST") {
  try {
    return await asMe(async (token) => {
      const response = await fetch(path, {
        method,
        body,
        cache: "no-store",
        signal: AbortSignal.timeout?.(timeoutMs),
        headers: { Authorization: token, ...(body && { "Content-Type": type }) },
      });
      if (response.status === 401) throw new RequestError("UNAUTHENTICATED");
      const content = await response.blob();
      return { ok: response.ok, status: response.status, text: await content.text(), content };
    });
  } catch (error) {
    throw error instanceof RequestError ? error : new RequestError("OFFLINE");
  }
}

/** Get a file from an endpoint for organizers. @param {string} path */
export function get(path) {
  return post(path, undefined, "", TIMEOUT_MS, "GET");
}

/** Return what an endpoint says about a failed request. @param {string} text */
export function messageOf(text) {
  try {
    const { error, code } = JSON.parse(text);
    return t(`error.${code}`, {}, error ?? t("error.other", { code }));
  } catch {
    return t("error.INTERNAL");
  }
}

/** Return the rows of a CSV file (RFC 4180) by the names of its columns. @param {string} text @returns {Record<string, string>[]} */
export function readCsv(text) {
  /** @type {string[][]} */
  const rows = [[]];
  for (const [, quoted, plain, end] of text.replace(/^\ufeff/, "").matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n"]*))(,|\r?\n|$)/g)) {
    rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replace(/""/g, '"'));
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  const [names, ...lines] = rows;
  return lines.filter((cells) => cells.length > 1).map((cells) => Object.fromEntries(names.map((name, index) => [name, cells[index] ?? ""])));
}

/**
 * Let the browser save rows as CSV, which Excel opens with its letters and, in countries with a decimal comma, its columns.
 * @param {string} name of the file @param {string[][]} rows
 */
export function saveCsv(name, rows) {
  // A cell that a spreadsheet would run as a formula begins with an apostrophe.
  const cell = (/** @type {string} */ text) => `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replace(/"/g, '""')}"`;
  const separator = (0.5).toLocaleString(navigator.language).includes(",") ? ";" : ",";
  const content = rows.map((row) => row.map(cell).join(separator)).join("\r\n");
  saveFile(name, new Blob([`\ufeff${content}\r\n`], { type: "text/csv" }));
}
