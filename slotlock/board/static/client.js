// @ts-check
/** Requests to /graphql: by the name of their operation, with the session and its renewal. */
import { noteServerTime } from "./clock.js";
import { documents } from "./documents.js";
import { redraw } from "./kernel.js";
import { local } from "./storage.js";

const TIMEOUT_MS = 15_000;
/** A password, or a sign-in at a provider, waits up to 30 s for its turn. */
const QUEUED_TIMEOUT_MS = 45_000;
const QUEUED_OPERATIONS = new Set([
  "login", "register", "setPassword", "resetPassword", "changePassword", "changeEmail", "startSignIn", "finishSignIn", "linkSignIn",
]);
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
/** Who has the session of this browser, while this page shows somebody else, or nobody. @type {any} */
export let newcomer = null;
/** Whether the server does not know yet that somebody signed out here. */
export let isEnding = false;
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

/** Whether this page has a session, also while no network can confirm it. */
export function hasSession() {
  return me !== null && local.get(REFRESH_TOKEN) !== null;
}

/** Return the session as the tab stored it that began or continued it last. */
function stored() {
  return local.read(SESSION, (kept) => kept.user.id && kept.accessToken && kept);
}

/** Return the id of the user of this page, also while no network can confirm the session. */
export function userId() {
  return (me === undefined ? stored()?.user : me)?.id;
}

/** Return the header that names the session. */
export function authorization() {
  return accessToken && `Bearer ${accessToken}`;
}

/** Begin a session in this browser, continue it with new tokens, or end it with null. @param {any} session */
export function setSession(session) {
  store(session);
  adopt(session);
}

/**
 * Store a session for all tabs, or remove it. Its user comes first, so that no tab takes its token for that of another user.
 * @param {any} session @param {number} [at]
 */
function store(session, at = Date.now()) {
  const { refreshToken, ...others } = session ?? {};
  // While the language of the user is open, the next page asks for the session.
  if (session) local.set(SESSION, JSON.stringify({ ...others, newAt: others.user.locale ? at : 0 }));
  else local.remove(SESSION);
  if (refreshToken) local.set(REFRESH_TOKEN, refreshToken);
  else if (!session) local.remove(REFRESH_TOKEN);
}

/** Store that the user has a language. */
export function storeUser() {
  noteStored();
  if (me && !newcomer) store({ accessToken, user: me }, newAt);
}

/**
 * Show the user of a session, nobody with null, or with undefined that it is not known yet who is there. Nobody is
 * between two users, so that nothing of the first one stays.
 * @param {any} session @param {number} [at] when its token was new
 */
export function adopt(session, at = Date.now()) {
  if (me && session && me.id !== session.user.id) adopt(null);
  const before = JSON.stringify(me);
  accessToken = session?.accessToken ?? "";
  newAt = at;
  me = session && session.user;
  noteStored();
  if (JSON.stringify(me) === before) return;
  for (const listener of sessionListeners) listener();
}

/** Note who has the session of this browser now: another tab may have begun another one, or ended it. */
function noteStored() {
  if (me && local.get(REFRESH_TOKEN) === null) return adopt(null);
  const user = me === undefined ? null : stored()?.user;
  const found = user && user.id !== me?.id ? user : null;
  if (found?.id !== newcomer?.id) redraw();
  newcomer = found;
}
addEventListener("storage", noteStored);

/** Stop if this page does not show the user any more, or this browser has the session of another one. @param {string | undefined} id */
function mustBe(id) {
  noteStored();
  if (id && (newcomer || me?.id !== id)) throw new RequestError(me ? "OTHER_USER" : "UNAUTHENTICATED");
}

/** Return the address where somebody begins: organizers with their campaigns. */
export function home() {
  return me && me.role !== "MEMBER" ? "#/organizer" : "#/";
}

/** Continue the session of this browser, if it has one: at once, if its access token is young. */
export async function resumeSession() {
  const kept = hasSession() && stored();
  const ageMs = Date.now() - kept?.newAt;
  if (ageMs >= 0 && ageMs < YOUNG_MS) {
    adopt(kept, kept.newAt);
    return recheckSession();
  }
  await refresh().catch(() => null);
  // Without a network, the session may continue later.
  if (me === undefined) setTimeout(() => me === undefined && resumeSession(), 5000);
}

/** Show the user whose session this browser has, instead of the one that the page shows. */
export function goOn() {
  adopt(undefined);
  return resumeSession();
}

/** Ask for the session anew: it may have ended, or its user may have another role. */
export async function recheckSession() {
  if (accessToken) await refresh().catch(() => null);
}

/** Sign out here at once, and on the server as soon as it answers. */
export async function signOut() {
  const used = authorization();
  const refreshToken = newcomer ? null : local.get(REFRESH_TOKEN);
  if (newcomer) adopt(null);
  else setSession(null);
  const end = async () => {
    const renewed = refreshToken && (await post("refreshSession", { refreshToken }, "")).refreshSession.accessToken;
    return post("logout", {}, renewed ? `Bearer ${renewed}` : used);
  };
  await sendUntilAnswered(end, { onTrouble: () => noteEnding(true) });
  noteEnding(false);
}

/** @param {boolean} isIt */
function noteEnding(isIt) {
  isEnding = isIt;
  redraw();
}

/** @type {Promise<void> | null} */
let refreshing = null;

/** Continue the session of this browser with new tokens, or end it here if it has ended; one tab at a time, as each token is valid once. */
function refresh() {
  refreshing ??= withLock(async () => {
    const [shown, refreshToken] = [me, local.get(REFRESH_TOKEN)];
    const answer = refreshToken && (await post("refreshSession", { refreshToken }, "")).refreshSession;
    const session = answer?.user ? answer : null;
    // Somebody may have signed in or out in another tab meanwhile: what that stored stays.
    if (local.get(REFRESH_TOKEN) === refreshToken) store(session);
    if (me === shown && (!me || !session || me.id === session.user.id)) adopt(session);
    else noteStored();
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
 * @param {string} [id] of the user who began what it is a part of
 * @returns {Promise<any>}
 */
export function run(name, variables = {}, id = me?.id) {
  return asMe((token) => post(name, variables, token), id);
}

/**
 * Send a request as the user that this page shows, again with a new token if its own has ended, but never as another user.
 * @template T @param {(token: string) => Promise<T>} send with the header that names the session
 * @param {string} [id] of the user
 * @returns {Promise<T>}
 */
export async function asMe(send, id = me?.id) {
  mustBe(id);
  const used = authorization();
  try {
    return await send(used);
  } catch (error) {
    if (!(error instanceof RequestError) || !used) throw error;
    if (error.code === "FORBIDDEN") recheckSession();
    if (error.code !== "UNAUTHENTICATED") throw error;
    if (authorization() === used) await refresh();
    mustBe(id);
    return send(authorization());
  }
}

/** Read a file of the API: a plain link would not name the session. @param {string} path @returns {Promise<Blob>} */
export function readFile(path) {
  return asMe(async (token) => {
    const response = await fetch(path, { headers: token ? { Authorization: token } : {}, cache: "no-store" });
    if (!response.ok) throw new RequestError(response.status === 401 ? "UNAUTHENTICATED" : "INTERNAL");
    return response.blob();
  });
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
 * Send a request with its key until there is an answer that stays, however often that is lost; but never as another user.
 * @param {() => Promise<any>} send returns the result: one with a `code` did not work
 * @param {{isWanted?: () => boolean, onTrouble?: (code: string) => void, codes?: Set<string>}} [caller] with the codes after which it is sent again
 * @returns {Promise<any>} the result, or null if it is not wanted any more
 */
export async function sendUntilAnswered(send, { isWanted = () => true, onTrouble = () => {}, codes = PASSING } = {}) {
  const id = me?.id;
  for (let attempt = 0; ; attempt += 1) {
    const result = await send().catch(failed);
    if (!codes.has(result.code)) return result;
    onTrouble(result.code);
    const pauseMs = Math.min(PAUSE_MS[0] * 2 ** attempt, PAUSE_MS[1]) * (0.5 + Math.random());
    await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, result.retryAfterMs ?? 0)));
    if (!isWanted() || (id && me?.id !== id)) return null;
  }
}
