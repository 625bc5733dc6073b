// @ts-check
/** A list that is read page by page. */
import { codeOf } from "../../client.js";
import { h, list, redraw } from "../../kernel.js";
import { bones, button, failure } from "../../parts.js";
import { t } from "../../text.js";

const READ_PAGES_AGAIN_MS = 2000;

/**
 * Return a list, whose first page is read again while a node of it will change by itself.
 * @param {(after: string | null) => Promise<any>} read returns the page, a connection
 * @param {(node: any) => boolean} [isMoving]
 */
export function pages(read, isMoving = () => false) {
  /** @type {any[] | null} */
  let nodes = null;
  let after = "";
  let error = "";
  let reads = 0;
  /** @type {any} */
  let timer;

  /** @param {boolean} [isMore] whether to add the next page */
  async function load(isMore = false) {
    leave();
    const current = reads;
    try {
      const page = await read(isMore ? after : null);
      if (current !== reads || !page) return; // somebody went on, or it is gone
      nodes = isMore ? [...(nodes ?? []), ...page.nodes] : page.nodes;
      after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : "";
      error = "";
      if (!isMore && page.nodes.some(isMoving)) timer = setTimeout(load, READ_PAGES_AGAIN_MS);
    } catch (caught) {
      error = codeOf(caught);
    }
    redraw();
  }
  load();

  function leave() {
    reads += 1;
    clearTimeout(timer);
  }

  /** @param {(node: any) => {key: string, signature: string, build: () => Element}} toRow @param {any} none what there is without any @param {string} [more] */
  function render(toRow, none, more = t("people.more")) {
    return [
      error && failure(error, () => load()),
      nodes ? (nodes.length ? list("ul", { class: "frame list" }, nodes.map(toRow)) : none) : !error && bones(5),
      after && h("p", null, button("second", more, () => load(true))),
    ];
  }

  return { load, leave, render, nodes: () => nodes, hasMore: () => Boolean(after) };
}
