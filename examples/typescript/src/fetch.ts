// The server needs up to 6 s, and 5 s more for the `waitMs` of this example.
const TIMEOUT_MS = 20_000

/** Like `fetch`, but rejects if no response arrives in time, so that the request can be sent again. */
export const fetchWithTimeout: typeof fetch = (input, init) => {
  const controller = new AbortController()
  // AbortSignal.any may lose the timeout to garbage collection (nodejs/node#57736).
  for (const signal of [AbortSignal.timeout(TIMEOUT_MS), init?.signal]) {
    signal?.addEventListener('abort', () => controller.abort(signal.reason))
  }
  return fetch(input, { ...init, signal: controller.signal })
}
