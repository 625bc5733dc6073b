// @ts-check
/** The clock of the server: that of the device may be wrong by hours. */

/** How much the server's clock is ahead of `performance.now()`, in ms, by the shortest exchange. */
let offsetMs = Date.now() - performance.now();
let bestRoundTripMs = Infinity;

/** Note when a request was sent and answered, and the server's time in between. @param {number} sentAt @param {number} answeredAt @param {string} serverTime */
export function noteServerTime(sentAt, answeredAt, serverTime) {
  const roundTripMs = answeredAt - sentAt;
  if (roundTripMs > bestRoundTripMs) return;
  bestRoundTripMs = roundTripMs;
  // As if the answer had taken no time: never ahead, so that no click is refused as too early.
  offsetMs = Date.parse(serverTime) - answeredAt;
}

/** Return the server's time in ms since 1970. */
export function now() {
  return performance.now() + offsetMs;
}

/** Whether the server's clock is known. */
export function isExact() {
  return bestRoundTripMs < Infinity;
}

/** The clock of a device that slept goes on elsewhere: measure again. */
export function forgetServerTime() {
  bestRoundTripMs = Infinity;
}
