// @ts-check
/** Subscriptions over one socket (graphql-transport-ws), which connects again by itself. */
import { authorization, documentId, me, onSession, recheckSession, reloadIfOutdated } from "./client.js";

const MAX_FAILURES = 3;
const RETRY_AFTER_GIVING_UP_MS = 60_000;
/** A server that was silent for so long is asked, and then has this time to answer. */
const SILENT_MS = 40_000;
const ANSWER_MS = 10_000;
/** After a restart of the server all clients are back at once; their reads are spread over this time. */
const RECONNECT_SPREAD_MS = 3000;
/** The server closes a socket so when its token or session ends, or its user gets another role. */
const SESSION_ENDED = 4403;

/**
 * @typedef {{name: string, variables: Record<string, any>, onData: (data: any) => void, onEnd: (code: string) => void}} Wanted
 */

/** @type {Map<string, Wanted>} */
const wanted = new Map();
/** @type {WebSocket | null} */
let socket = null;
let isOpen = false;
let wasOpen = false;
/** Whether the socket was lost, even before it was open, so that events may be. */
let hasMissed = false;
let failures = 0;
let lastId = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retryTimer;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let silenceTimer;
/** @type {Set<() => void>} */
const connectionListeners = new Set();
/** @type {Set<() => void>} */
const readers = new Set();

/** Whether events arrive. Otherwise a view reads again from time to time: see `hasGivenUp`. */
export function isLive() {
  return isOpen;
}

/** Whether the first connection is on its way. */
export function isConnecting() {
  return !wasOpen && !hasGivenUp();
}

/** Whether sockets fail, as where one address may not open more. */
export function hasGivenUp() {
  return failures >= MAX_FAILURES;
}

/** Call this whenever the socket opens or closes, until the returned function is called. @param {() => void} listener */
export function onConnection(listener) {
  connectionListeners.add(listener);
  return () => connectionListeners.delete(listener);
}

/** Read again once the socket is back after an interruption, until the returned function is called. @param {() => void} read */
export function onMissed(read) {
  readers.add(read);
  return () => readers.delete(read);
}

/**
 * Subscribe until the returned function is called. After an interruption the server sends the
 * state anew.
 * @param {string} name @param {Record<string, any>} variables @param {(data: any) => void} onData
 * @param {(code: string) => void} [onEnd] with the code of an error, or an empty text
 */
export function subscribe(name, variables, onData, onEnd = () => {}) {
  const id = String((lastId += 1));
  wanted.set(id, { name, variables, onData, onEnd });
  if (isOpen) send(id);
  else connect();
  return () => {
    if (wanted.delete(id) && isOpen) socket?.send(JSON.stringify({ id, type: "complete" }));
    if (wanted.size === 0) setTimeout(() => wanted.size === 0 && close(), 2000);
  };
}

/** @param {string} id */
function send(id) {
  const each = wanted.get(id);
  if (each) socket?.send(JSON.stringify({ id, type: "subscribe", payload: { documentId: documentId(each.name), variables: each.variables } }));
}

function connect() {
  clearTimeout(retryTimer);
  if (socket || wanted.size === 0) return;
  const opened = new WebSocket(location.origin.replace(/^http/, "ws") + "/graphql", "graphql-transport-ws");
  socket = opened;
  opened.onopen = () => {
    const header = authorization();
    opened.send(JSON.stringify({ type: "connection_init", payload: header ? { authorization: header } : {} }));
  };
  opened.onmessage = (event) => receive(JSON.parse(event.data));
  opened.onclose = ({ code }) => {
    if (code === SESSION_ENDED) recheckSession();
    if (socket === opened) lose();
  };
}

/** @param {any} message */
function receive({ id, type, payload }) {
  clearTimeout(silenceTimer);
  silenceTimer = setTimeout(ask, SILENT_MS);
  const each = wanted.get(id);
  if (type === "connection_ack") {
    isOpen = wasOpen = true;
    failures = 0;
    for (const known of wanted.keys()) send(known);
    notify();
    if (hasMissed) setTimeout(() => readers.forEach((read) => read()), Math.random() * RECONNECT_SPREAD_MS);
    hasMissed = false;
  } else if (type === "ping") {
    socket?.send(JSON.stringify({ type: "pong" }));
  } else if (type === "next" && each) {
    if (payload.errors) end(id, payload.errors[0].extensions?.code ?? "INTERNAL");
    else each.onData(payload.data);
  } else if (type === "error" && each) {
    end(id, payload[0]?.extensions?.code ?? "INTERNAL");
  } else if (type === "complete" && each) {
    end(id, "");
  }
}

/** Ask whether the server is there: where nobody books, it has nothing to say. */
function ask() {
  socket?.send(JSON.stringify({ type: "ping" }));
  silenceTimer = setTimeout(() => socket?.close(), ANSWER_MS);
}

/** @param {string} id @param {string} code */
function end(id, code) {
  const each = wanted.get(id);
  wanted.delete(id);
  setTimeout(() => reloadIfOutdated(code), Math.random() * RECONNECT_SPREAD_MS);
  each?.onEnd(code);
}

function lose() {
  if (!isOpen) failures += 1;
  socket = null;
  isOpen = false;
  clearTimeout(silenceTimer);
  hasMissed = true;
  const pauseMs = hasGivenUp() ? RETRY_AFTER_GIVING_UP_MS : 500 * 2 ** failures;
  retryTimer = setTimeout(connect, pauseMs * (0.5 + Math.random()));
  notify();
}

function close() {
  const closed = socket;
  socket = null;
  isOpen = false;
  clearTimeout(silenceTimer);
  closed?.close();
}

function notify() {
  for (const listener of connectionListeners) listener();
}

// The socket names its user once: another user needs another one.
let usedBy = me?.id;
onSession(() => {
  if (usedBy === me?.id) return;
  usedBy = me?.id;
  close();
  connect();
});
addEventListener("offline", () => {
  const dead = socket;
  if (dead) lose();
  dead?.close();
});
addEventListener("online", () => {
  failures = 0;
  connect();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) connect();
});
