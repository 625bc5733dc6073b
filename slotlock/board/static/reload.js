// @ts-check
/**
 * Load the page anew. A page that a cache kept longer than the server keeps its files gets this
 * instead of them. At most once in ten seconds: the page may come from that cache again.
 */
const STORED = "slotlock.reloadedAt";
const PAUSE_MS = 10_000;

/** Return when the page was loaded anew, and note that it is. Without storage, it waits each time. @param {() => any} use */
function stored(use) {
  try {
    return use();
  } catch {
    return Date.now();
  }
}

const since = Date.now() - Number(stored(() => sessionStorage.getItem(STORED)) ?? 0);
setTimeout(() => {
  stored(() => sessionStorage.setItem(STORED, String(Date.now())));
  location.reload();
}, since >= 0 && since < PAUSE_MS ? PAUSE_MS - since : 0);

export {};
