// @ts-check
/**
 * Keeps the files of the page, so that it opens without a network, at the door for example. What
 * it shows then is what the page stored itself; nothing of /graphql is ever kept here.
 */
const VERSION = "{{version}}";
/** The files of this version, which the server writes here. @type {string[]} */
const FILES = JSON.parse('{{files}}');
const CACHE = `slotlock-board-${VERSION}`;
const PAGE = "/board";
/** A network that does not answer in this time is none. */
const PATIENCE_MS = 4000;

const worker = /** @type {any} */ (self);

worker.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(forgetOthers()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== location.origin) return;
  if (event.request.mode === "navigate" && pathname === PAGE) event.respondWith(page(event.request));
  else if (pathname.startsWith(`${PAGE}/${VERSION}/`)) event.respondWith(file(event.request));
});

async function install() {
  const response = await fetch(PAGE, { cache: "no-cache" });
  if (!(await response.clone().text()).includes(VERSION)) throw new Error("another version is out");
  const cache = await caches.open(CACHE);
  await cache.addAll(FILES.map((name) => `${PAGE}/${VERSION}/${name}`));
  await cache.put(PAGE, response);
  await worker.skipWaiting();
}

async function forgetOthers() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("slotlock-board-") && name !== CACHE).map((name) => caches.delete(name)));
}

/** Return the page of the network, or the one that is kept. @param {Request} request */
async function page(request) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), PATIENCE_MS);
  try {
    // A page that loads anew does not want the one that the browser keeps.
    const response = await fetch(PAGE, { cache: request.cache, signal: abort.signal });
    if (response.ok) return response;
  } catch {
    // No network: the kept one is as good.
  } finally {
    clearTimeout(timer);
  }
  return (await caches.match(PAGE, { cacheName: CACHE })) ?? Response.error();
}

/** @param {Request} request */
async function file(request) {
  return (await caches.match(request, { cacheName: CACHE })) ?? fetch(request);
}
