// @ts-check
/**
 * Load the page anew. A page that a cache kept longer than the server keeps its files gets this
 * instead of them. At most once in ten seconds, because the page may come from that cache again, and
 * not while somebody types.
 */
const STORED = "slotlock.reloadedAt";
const PAUSE_MS = 10_000;
/** What somebody types is sent or left in the end. */
const LOOK_AGAIN_MS = 1000;

/** Return when the page was loaded anew, and note that it is. Without storage, it waits each time. @param {() => any} use */
function stored(use) {
  try {
    return use();
  } catch {
    return Date.now();
  }
}

/** Whether somebody typed what a new page would not have. */
function hasEntries() {
  return [...document.querySelectorAll("input:not([type=checkbox], [readonly]), textarea")].some((field) => /** @type {HTMLInputElement} */ (field).value);
}

/** Whether a request needs a new page. Otherwise the person left what they typed, for a view that is missing. */
const isRequested = import.meta.url.endsWith("/reload.js");

function reload() {
  if (isRequested && hasEntries()) {
    setTimeout(reload, LOOK_AGAIN_MS);
    return;
  }
  stored(() => sessionStorage.setItem(STORED, String(Date.now())));
  location.reload();
}

const since = Date.now() - Number(stored(() => sessionStorage.getItem(STORED)) ?? 0);
setTimeout(reload, since >= 0 && since < PAUSE_MS ? PAUSE_MS - since : 0);

/** Let an import of a module that this comes instead of wait for the new page. */
export function then() {}
