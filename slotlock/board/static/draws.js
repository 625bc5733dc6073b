// @ts-check
/** The draw of a campaign for members: how often it is read, and where it is. */
import { codeOf, run } from "./client.js";
import { now } from "./clock.js";
import { h, redraw } from "./kernel.js";
import { notice } from "./parts.js";
import { oneAtATime, readAll } from "./store.js";
import { countdown, schoolZone, shortWhenOf, t, unitFormat } from "./text.js";

const MS_A_DAY = 86_400_000;

/** Return a time at random around another one, so that not all pages read at once. @param {number} ms @param {number} spread */
export const around = (ms, spread) => ms + spread * (2 * Math.random() - 1);

/** Whether users can enter wishes. @param {any} draw */
export const isCollecting = (draw) => draw?.state === "COLLECTING" && Date.parse(draw.wishesUntil) > now();

/** Return in how many ms a draw is read again: about each minute, just after its deadline, and often while the server closes or books. @param {any} draw */
function pauseOf(draw) {
  const { state, root, isWritten, wishesUntil } = draw ?? {};
  const leftMs = Date.parse(wishesUntil) - now();
  const isMoving = { COLLECTING: leftMs <= 0, CLOSED: !root, PUBLISHED: !isWritten }[/** @type {string} */ (state)];
  if (isMoving) return around(5000, 2000);
  const usual = around(60_000, 20_000);
  return leftMs > 0 && leftMs < usual ? leftMs + Math.random() * 10_000 : usual;
}

/**
 * Read a draw again and again, one request at a time, until `stop`; `again` reads it at once.
 * @param {() => Promise<any>} read returns the draw; undefined if it needs to be read no more
 * @param {(draw: any) => number} pause returns in how many ms it is read again
 */
export function follow(read, pause = pauseOf) {
  /** @type {any} */
  let timer;
  let isLeft = false;
  const again = oneAtATime(async () => {
    clearTimeout(timer);
    const draw = await read();
    if (!isLeft && draw !== undefined) timer = setTimeout(again, pause(draw));
  });
  again();
  return {
    again,
    stop() {
      isLeft = true;
      clearTimeout(timer);
    },
  };
}

/** Follow the draw of a campaign until its places are booked, and what is left then. @param {string} campaign @param {() => void} [onOver] */
export function followDraw(campaign, onOver) {
  /** @type {{draw: any, free: any[] | null}} and the courses with free places */
  const found = { draw: null, free: null };
  const following = follow(async () => {
    try {
      ({ draw: found.draw } = await run("drawState", { campaign }));
      const isOver = found.draw?.isWritten;
      if (isOver) found.free = await readAll("freeSlots", { campaign }, "slots");
      if (isOver) onOver?.();
      return isOver ? undefined : found.draw;
    } catch (caught) {
      codeOf(caught);
      return found.draw;
    } finally {
      redraw();
    }
  });
  /** @param {string} key */
  const link = (key) => h("a", { class: "btn", href: `#/wishes/${campaign}` }, t(key));

  /**
   * Return what the page of the campaign says of the draw.
   * @param {any} shown the campaign @param {any[] | null} slots of the campaign @param {string} from when what is left can be booked
   */
  function panel({ admission, hasMyWishes, closesAt }, slots, from) {
    const { draw } = found;
    if (admission !== "DRAW") {
      const text = slots && Date.parse(closesAt) > now() && leftoversText(slots, from);
      return draw?.state === "PUBLISHED" && (text || hasMyWishes) && notice("", "star", text, hasMyWishes && link("wishes.result"));
    }
    if (!isCollecting(draw)) return notice("wait", "clock", drawText(draw), hasMyWishes && link("wishes.counts"));
    return notice("", "clock", [h("strong", { class: "named" }, drawText(draw)), h("br"), t("wishes.calm")], link("wishes.enter"));
  }

  /**
   * Return what the first page says of the draw, and a link or a tag.
   * @param {any} shown the campaign @param {string} from when what is left can be booked @param {any[]} usual what it says without a draw
   */
  function entry({ admission, hasMyWishes }, from, usual) {
    const { draw, free } = found;
    if (admission !== "DRAW") {
      if (!free) return usual;
      // How much is free changes while everybody books.
      const text = from || !free.length ? leftoversText(free, from) : usual[0];
      return [text, hasMyWishes ? link("wishes.result") : free.length > 0 && usual[1]];
    }
    return [drawText(draw), isCollecting(draw) ? link("wishes.enter") : hasMyWishes && link("wishes.counts")];
  }

  return { panel, entry, ...following };
}

/** Say where a draw is until its result is there. @param {any} draw */
export function drawText(draw) {
  if (isCollecting(draw)) {
    const leftMs = Date.parse(draw.wishesUntil) - now();
    const time = leftMs < MS_A_DAY ? countdown(leftMs) : unitFormat("day").format(Math.round(leftMs / MS_A_DAY));
    return `${untilText(draw.wishesUntil)} · ${t("state.left", { time })}`;
  }
  if (!draw || draw.state === "CANCELLED") return t("wishes.invite");
  if (draw.state === "PUBLISHED") return t("wishes.booking");
  const { at } = draw.announcement;
  return Date.parse(at) > now() ? t("wishes.fixedUntil", { time: shortWhenOf(at, schoolZone) }) : t("wishes.closed");
}

/** Say until when wishes are entered. @param {string} at */
export const untilText = (at) => t("wishes.until", { time: shortWhenOf(at, schoolZone) });

/** Say what a draw has left. @param {any[]} slots of the campaign @param {string} from when it can be booked, empty for now */
export function leftoversText(slots, from) {
  const isOver = (/** @type {any} */ slot) => slot.status === "CANCELLED" || Date.parse(slot.startTime) <= now();
  const free = slots.filter((slot) => slot.remaining > 0 && !isOver(slot));
  if (!free.length) return t("wishes.allTaken");
  const places = t("state.places", { count: free.reduce((sum, slot) => sum + slot.remaining, 0) });
  return t(from ? "wishes.freeFrom" : "wishes.free", { places, courses: t("wishes.inCourses", { count: free.length }), time: from });
}
