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

/** Whether the server closes or books at the moment. @param {any} draw */
function isMoving(draw) {
  const { state, root, isWritten } = draw;
  return (state === "COLLECTING" && !isCollecting(draw)) || (state === "CLOSED" && !root) || (state === "PUBLISHED" && !isWritten);
}

/** Return in how many ms a draw is read again: about each minute, just after its deadline, and often while it moves. @param {any} draw */
function pauseOf(draw) {
  if (draw && isMoving(draw)) return around(5000, 2000);
  const usual = around(60_000, 20_000);
  const leftMs = isCollecting(draw) ? Date.parse(draw.wishesUntil) - now() : usual;
  return leftMs < usual ? leftMs + Math.random() * 10_000 : usual;
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

/** Follow the draw of a campaign until its places are booked, and what is left then. @param {string} campaign */
export function followDraw(campaign) {
  /** @type {{draw: any, free: number[] | null}} of each course with free places, their number */
  const found = { draw: null, free: null };
  const following = follow(async () => {
    try {
      ({ draw: found.draw } = await run("drawState", { campaign }));
      const isOver = found.draw?.isWritten;
      if (isOver) found.free = (await readAll("freeSlots", { campaign }, "slots"))?.map((slot) => slot.remaining) ?? null;
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
   * @param {any} shown the campaign @param {number[] | null} free of each course with free places, their number @param {string} from when they can be booked
   */
  function panel({ admission, hasMyWishes }, free, from) {
    const { draw } = found;
    if (admission !== "DRAW") return draw?.state === "PUBLISHED" && notice("", "star", free && leftoversText(free, from), hasMyWishes && link("wishes.result"));
    if (!isCollecting(draw)) return notice("wait", "clock", drawText(draw), hasMyWishes && link("wishes.counts"));
    return notice("", "clock", [h("strong", { class: "named" }, drawText(draw)), h("br"), t("wishes.calm")], link("wishes.enter"));
  }

  /** Return what the first page says of the draw, and a link. @param {any} shown the campaign @param {string} from when what is left can be booked */
  function entry({ admission, hasMyWishes }, from) {
    const { draw, free } = found;
    if (admission !== "DRAW") return draw?.state !== "CANCELLED" && [free ? leftoversText(free, from) : "", link("wishes.result")];
    return [drawText(draw), isCollecting(draw) ? link("wishes.enter") : hasMyWishes && link("wishes.counts")];
  }

  return { panel, entry, ...following };
}

/** Say where a draw is until its result is there. @param {any} draw */
export function drawText(draw) {
  if (isCollecting(draw)) return `${untilText(draw.wishesUntil)} · ${t("state.left", { time: leftText(draw) })}`;
  if (!draw || draw.state === "CANCELLED") return t("wishes.invite");
  if (draw.state === "PUBLISHED") return t("wishes.booking");
  const { at } = draw.announcement;
  return Date.parse(at) > now() ? t("wishes.fixedUntil", { time: shortWhenOf(at, schoolZone) }) : t("wishes.closed");
}

/** Say until when wishes are entered. @param {string} at */
export const untilText = (at) => t("wishes.until", { time: shortWhenOf(at, schoolZone) });

/** Return for how long wishes are entered: some days, or a countdown. @param {any} draw */
function leftText({ wishesUntil }) {
  const leftMs = Date.parse(wishesUntil) - now();
  return leftMs < MS_A_DAY ? countdown(leftMs) : unitFormat("day").format(Math.round(leftMs / MS_A_DAY));
}

/** Say what a draw has left. @param {number[]} free of each course with free places, their number @param {string} [from] when it can be booked */
export function leftoversText(free, from) {
  if (!free.length) return t("wishes.allTaken");
  const places = t("state.places", { count: free.reduce((sum, each) => sum + each) });
  return t(from ? "wishes.freeFrom" : "wishes.free", { places, courses: t("wishes.inCourses", { count: free.length }), time: from });
}
