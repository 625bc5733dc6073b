// @ts-check
/** Requests to /graphql: by the name of their operation, with the session and its renewal. */
import { noteServerTime } from "./clock.js";
import { documents } from "./documents.js";
import { redraw } from "./kernel.js";
import { local } from "./storage.js";

const TIMEOUT_MS = 15_000;
/** A password, or a sign-in at a provider, waits up to 30 s for its turn. */
const QUEUED_TIMEOUT_MS = 45_000;
const QUEUED_OPERATIONS = new Set(["login", "register", "setPassword", "resetPassword", "changePassword", "changeEmail", "startSignIn", "finishSignIn", "linkSignIn"]);
const REFRESH_TOKEN = "slotlock.refreshToken";
/** The access token and its user, so that the next page asks for its list at once. */
const SESSION = "slotlock.session";
/** A token is valid for 15 minutes. Whatever the clock of a device shows, it measures these. */
const YOUNG_MS = 14 * 60_000;
/** The code of a server that has other operations: the page is older than it, or newer. */
const OUTDATED = "PERSISTED_QUERY_NOT_SUPPORTED";
/** Codes after which the same request, with its key, may be sent again. */
const PASSING = new Set([OUTDATED, "OFFLINE", "OUTCOME_UNKNOWN", "OVERLOADED", "INTERNAL", "RATE_LIMITED", "LOCKED", "QUEUE_FULL", "TEAM_BUSY"]);
/** The code after which a sign-in, which has no key, may be sent again. */
export const BUSY = new Set(["SERVER_BUSY"]);
const PAUSE_MS = [400, 4000];

/** A request without data. `code` is that of the API, or OFFLINE without a response. */
export class RequestError extends Error {
  /** @param {string} code @param {number} [retryAfterMs] */
  constructor(code, retryAfterMs = 0) {
    super(code);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Return the code of a failed request. @param {unknown} caught */
export function codeOf(caught) {
  if (caught instanceof RequestError) return caught.code;
  throw caught;
}

/** Return a failed request as a result. @param {any} caught @returns {{code: string, retryAfterMs: number}} */
function failed(caught) {
  return { code: codeOf(caught), retryAfterMs: caught.retryAfterMs };
}

/** The signed-in user, null for nobody, undefined while that is unknown. @type {any} */
export let me;
let accessToken = "";
/** When the access token was new, by the clock of the device. */
let newAt = 0;
/** @type {Set<() => void>} */
const sessionListeners = new Set();

/** When the last request failed without a response, in ms since 1970; 0 while there is a connection. */
export let lostAt = 0;
/** @param {number} at */
function noteLost(at) {
  if (Boolean(lostAt) === Boolean(at)) return;
  lostAt = at;
  redraw();
}
addEventListener("offline", () => noteLost(Date.now()));
addEventListener("online", () => noteLost(0));

/** Let requests name more operations. @param {Record<string, string>} more */
export function addDocuments(more) {
  Object.assign(documents, more);
}

/** Return how a request names an operation. @param {string} name */
export function documentId(name) {
  return `board/${name}/${documents[name]}`;
}

/** Call this whenever a user signs in, changes or signs out, until the returned function is called. @param {() => void} listener */
export function onSession(listener) {
  sessionListeners.add(listener);
  return () => sessionListeners.delete(listener);
}

/** Whether this browser has a session, also while no network can confirm it. */
export function hasSession() {
  return local.get(REFRESH_TOKEN) !== null;
}

/** Return the header that names the session. */
export function authorization() {
  return accessToken && `Bearer ${accessToken}`;
}

/** Begin a session, continue it with a new token, or end it with null. @param {any} session @param {number} [at] when its token was new */
export function setSession(session, at = Date.now()) {
  const before = JSON.stringify(me);
  accessToken = session?.accessToken ?? "";
  newAt = at;
  me = session?.user ?? null;
  if (session) local.set(REFRESH_TOKEN, session.refreshToken);
  else local.remove(REFRESH_TOKEN);
  keepSession();
  if (JSON.stringify(me) === before) return;
  for (const listener of sessionListeners) listener();
}

/** Store the session, unless the language of its user is still open. */
export function keepSession() {
  if (me?.locale) local.set(SESSION, JSON.stringify({ accessToken, user: me, newAt }));
  else local.remove(SESSION);
}

/** Return the address where somebody begins: organizers with their campaigns. */
export function home() {
  return me && me.role !== "MEMBER" ? "#/organizer" : "#/";
}

/** Continue the session of this browser, if it has one: at once, if its access token is young. */
export async function resumeSession() {
  const refreshToken = local.get(REFRESH_TOKEN);
  const kept = JSON.parse(local.get(SESSION) ?? "null");
  const ageMs = Date.now() - kept?.newAt;
  if (refreshToken && ageMs >= 0 && ageMs < YOUNG_MS) {
    setSession({ ...kept, refreshToken }, kept.newAt);
    return recheckSession();
  }
  try {
    if (!hasSession() || !(await refresh())) setSession(null);
  } catch {
    me = null; // no network: the session may continue later
    setTimeout(resumeSession, 5000);
  }
}

/** Ask for the session anew: it may have ended, or its user may have another role. */
export async function recheckSession() {
  if (accessToken && !(await refresh().catch(() => true))) setSession(null);
}

/** Sign out here, or end the session here that has ended elsewhere. @param {boolean} [isEnded] */
export async function signOut(isEnded = false) {
  if (!isEnded) await run("logout").catch(() => null);
  setSession(null);
}

/** @type {Promise<boolean> | null} */
let refreshing = null;

/** Exchange the refresh token; one tab at a time, as each token is valid once. */
function refresh() {
  refreshing ??= withLock(async () => {
    const refreshToken = local.get(REFRESH_TOKEN);
    if (!refreshToken) return false;
    const { refreshSession } = await post("refreshSession", { refreshToken }, "");
    if (refreshSession.__typename !== "Session") return false;
    setSession(refreshSession);
    return true;
  }).finally(() => {
    refreshing = null;
  });
  return refreshing;
}

/** @template T @param {() => Promise<T>} task @returns {Promise<T>} */
function withLock(task) {
  return navigator.locks ? navigator.locks.request("slotlock.session", task) : task();
}

/**
 * Run an operation and return its data.
 * @param {string} name of a file in operations/
 * @param {Record<string, any>} [variables]
 * @returns {Promise<any>}
 */
export async function run(name, variables = {}) {
  const used = authorization();
  try {
    return await post(name, variables, used);
  } catch (error) {
    if (!(error instanceof RequestError) || !used) throw error;
    if (error.code === "FORBIDDEN") recheckSession();
    if (error.code !== "UNAUTHENTICATED") throw error;
    if (authorization() === used && !(await refresh())) {
      await signOut(true);
      throw error;
    }
    return post(name, variables, authorization());
  }
}

/** Run a mutation; returns its result. One with a `code` did not work. @param {string} name @param {Record<string, any>} [variables] @returns {Promise<any>} */
export function resultOf(name, variables) {
  return run(name, variables).then((data) => data[name], failed);
}

/** @param {string} name @param {Record<string, any>} variables @param {string} token */
async function post(name, variables, token) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), QUEUED_OPERATIONS.has(name) ? QUEUED_TIMEOUT_MS : TIMEOUT_MS);
  const sentAt = performance.now();
  let response, body;
  try {
    response = await fetch("/graphql", {
      method: "POST",
      signal: abort.signal,
      cache: "no-store",
      headers: { "Content-Type": "application/json", Accept: "application/json", ...(token && { Authorization: token }) },
      body: JSON.stringify({ documentId: documentId(name), variables }),
    });
    body = await response.json();
  } catch {
    if (!response) noteLost(Date.now());
    throw new RequestError(response ? "INTERNAL" : "OFFLINE");
  } finally {
    clearTimeout(timer);
  }
  noteLost(0);
  const error = body.errors?.[0];
  if (error) {
    const { code = "INTERNAL", retryAfterMs = 0 } = error.extensions ?? {};
    reloadIfOutdated(code);
    throw new RequestError(code, retryAfterMs);
  }
  if (body.data?.serverTime) noteServerTime(sentAt, performance.now(), body.data.serverTime);
  return body.data;
}

/** Load the page anew, if the server does not know what it asks. @param {string} code */
export function reloadIfOutdated(code) {
  if (code === OUTDATED) import("./reload.js").catch(() => null); // without a network, the next request says so again
}

/** Return a new key for a request that must happen once. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Send a request with its key until there is an answer that stays, however often that is lost.
 * @param {() => Promise<any>} send returns the result: one with a `code` did not work
 * @param {{isWanted: () => boolean, onTrouble: (code: string) => void, codes?: Set<string>}} caller with the codes after which it is sent again
 * @returns {Promise<any>} the result, or null if it is not wanted any more
 */
export async function sendUntilAnswered(send, { isWanted, onTrouble, codes = PASSING }) {
  for (let attempt = 0; ; attempt += 1) {
    const result = await send().catch(failed);
    if (!codes.has(result.code)) return result;
    onTrouble(result.code);
    const pauseMs = Math.min(PAUSE_MS[0] * 2 ** attempt, PAUSE_MS[1]) * (0.5 + Math.random());
    await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, result.retryAfterMs ?? 0)));
    if (!isWanted()) return null;
  }
}
