// @ts-check
/** Pages of a list read to their end, and the newest state of the slots that a view shows. */
import { codeOf, lostAt, run } from "./client.js";
import { redraw } from "./kernel.js";
import { shows } from "./people.js";
import { hasGivenUp, isLive, onConnection, onMissed, subscribe } from "./socket.js";
import { forgetServerTime, now } from "./clock.js";

const PAGE = 100;
/** Counts are drawn at most four times a second. */
const DRAW_MS = 250;
/** Without a socket, a list is read again after this time, and some more so that not all come at once. */
const READ_AGAIN_MS = [10_000, 10_000];
/** All clients learn of a new slot at once; their reads are spread over this time. */
const SPREAD_MS = 3000;
/** A slot that changed so long before the list was read is not in it because it is over. */
const SURELY_READ_MS = 10_000;

/**
 * Read all pages of a list.
 * @param {string} name of an operation with $first and $after
 * @param {Record<string, any>} variables
 * @param {string} field of the data that is the connection
 */
export async function readAll(name, variables, field) {
  const nodes = [];
  let after = null;
  do {
    /** @type {any} */
    const connection = (await run(name, { ...variables, first: PAGE, after }))[field];
    if (!connection) return null;
    nodes.push(...connection.nodes);
    after = connection.pageInfo.hasNextPage ? connection.pageInfo.endCursor : null;
  } while (after);
  return nodes;
}

shows.read = readAll;

/**
 * Return a function that runs a task, but never twice at once: a call during a run begins another
 * run after it, so that the last result is the newest.
 * @param {() => Promise<void>} task
 */
export function oneAtATime(task) {
  /** @type {Promise<void> | null} */
  let running = null;
  let isWanted = false;
  const run = async () => {
    try {
      while (isWanted) {
        isWanted = false;
        await task();
      }
    } finally {
      running = null;
    }
  };
  return () => {
    isWanted = true;
    return (running ??= run());
  };
}

/**
 * Return a function that reads what a view shows, once at a time, and draws it. Its `error` is the code of why that failed.
 * @param {() => Promise<string | void>} read returns the code of what is missing
 */
export function readerOf(read) {
  /** @type {(() => Promise<void>) & {error: string}} */
  const load = Object.assign(oneAtATime(async () => {
    try {
      load.error = (await read()) || "";
    } catch (caught) {
      load.error = codeOf(caught);
    }
    redraw();
  }), { error: "" });
  return load;
}

/** A list that stays current: read once, then by events or, without a socket, read again. */
class LiveList {
  /** @type {any[] | null} */
  items = null;
  /** The code of the error of the last read. */
  error = "";
  readAt = 0;
  /** When the last read began, by `performance.now()`. */
  readFrom = 0;
  /** The last changes, each with its time: a read that began before does not know them. @type {Map<string, [number, () => void]>} */
  changes = new Map();

  isEnded = false;
  isLeft = false;
  /** @type {Array<() => void>} */
  ends = [];

  /** @param {() => Promise<any[] | null>} read */
  constructor(read) {
    this.read = read;
    const stops = [onConnection(() => this.schedule()), onMissed(() => this.load())];
    this.stopListening = () => stops.forEach((stop) => stop());
    this.load();
  }

  /** Read the list, and watch it. */
  load = oneAtATime(() => this.readOnce());

  async readOnce() {
    if (this.isLeft) return;
    const readFrom = performance.now();
    try {
      const items = await this.read();
      if (this.isLeft) return;
      this.items = items;
      this.error = items === null ? "SLOT_NOT_FOUND" : "";
      this.readAt = Date.now();
      this.readFrom = readFrom;
      for (const [at, change] of this.changes.values()) if (at > readFrom) change();
      this.watch();
    } catch (error) {
      this.error = codeOf(error);
    } finally {
      redraw();
      this.schedule();
    }
  }

  /** Make a change, and again after a read that began before. @param {string} key of what replaces it @param {() => void} change */
  apply(key, change) {
    this.changes.set(key, [performance.now(), change]);
    change();
  }

  /** Subscribe to what was read. */
  watch() {}

  /** Replace one item, or remove it. @param {string} id @param {any} item */
  put(id, item) {
    const known = this.items?.find((each) => each.id === id);
    const others = (this.items ?? []).filter((each) => each !== known);
    this.items = item ? [...others, { ...known, ...item }] : others;
  }

  /**
   * Follow events, or read again once they end.
   * @param {string} name of a subscription @param {Record<string, any>} variables @param {(data: any) => void} onData
   */
  follow(name, variables, onData) {
    this.isEnded = false;
    this.ends.push(subscribe(name, variables, onData, () => {
      this.ends = [];
      this.isEnded = true;
      this.schedule();
    }));
  }

  /** Read again later if there is no socket, or the first read failed. */
  schedule() {
    clearTimeout(this.timer);
    if (this.isLeft || (isLive() && !this.error && !this.isEnded)) return;
    const pauseMs = READ_AGAIN_MS[0] + Math.random() * READ_AGAIN_MS[1];
    this.timer = setTimeout(() => this.load(), this.error ? pauseMs / 4 : pauseMs);
  }

  /** How current the view is: "live", "reading" or "old". */
  get state() {
    if (lostAt) return "old";
    if (isLive()) return "live";
    return hasGivenUp() && !this.error ? "reading" : "old";
  }

  leave() {
    this.isLeft = true;
    this.stopListening();
    clearTimeout(this.timer);
    for (const end of this.ends.splice(0)) end();
  }
}

/** The campaigns that the person sees. */
export class LiveCampaigns extends LiveList {
  /** @param {() => void} [onChange] is called whenever there may be another one */
  constructor(onChange = () => {}) {
    super(() => readAll("campaigns", {}, "campaigns"));
    this.onChange = onChange;
  }

  watch() {
    this.onChange();
    if (this.ends.length) return;
    this.follow("watchCampaigns", {}, ({ campaignChanges: { campaignId, campaign } }) => {
      this.apply(campaignId, () => this.put(campaignId, campaign));
      this.onChange();
      redraw();
    });
  }
}

/** Slots, all of a campaign or some. */
export class LiveSlots extends LiveList {
  /** @type {Set<string>} */
  met = new Set();
  isDrawing = false;

  /**
   * @param {() => Promise<any[] | null>} read
   * @param {string} [campaign] whose slots these are, which is watched as a whole with its new slots
   */
  constructor(read, campaign) {
    super(read);
    this.campaign = campaign;
  }

  watch() {
    const { campaign } = this;
    if (campaign) {
      if (this.items && !this.ends.length) this.follow("watchCampaignSlots", { campaign }, ({ campaignAvailability }) => this.note(campaignAvailability));
      return;
    }
    for (const end of this.ends.splice(0)) end();
    const ids = (this.items ?? []).map((slot) => slot.id);
    for (let start = 0; start < ids.length; start += PAGE) {
      const slotIds = ids.slice(start, start + PAGE);
      this.ends.push(subscribe("watchSlots", { slotIds }, ({ slotAvailability }) => this.note(slotAvailability)));
    }
  }

  /** Read again, once, if a slot is new in the campaign. @param {any} state */
  meet(state) {
    const sinceReadMs = performance.now() - this.readFrom + SURELY_READ_MS;
    if (state.status !== "PUBLISHED" || Date.parse(state.at) < now() - sinceReadMs || this.met.has(state.slotId)) return;
    this.met.add(state.slotId);
    clearTimeout(this.meeting);
    this.meeting = setTimeout(() => this.load(), Math.random() * SPREAD_MS);
  }

  /** @param {any} state of a slot */
  note(state) {
    this.apply(state.slotId, () => this.update(state));
  }

  /** Use a newer state of a slot; one that is older than what is known is late. @param {any} state */
  update(state) {
    const slot = this.items?.find((each) => each.id === state.slotId);
    if (!slot) this.meet(state);
    if (!slot || state.version < slot.version) return;
    Object.assign(slot, { version: state.version, capacity: state.capacity, remaining: state.remaining, status: state.status });
    if (this.isDrawing) return;
    this.isDrawing = true;
    setTimeout(() => {
      this.isDrawing = false;
      redraw();
    }, DRAW_MS);
  }

  leave() {
    super.leave();
    clearTimeout(this.meeting);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) forgetServerTime();
});
