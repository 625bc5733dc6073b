// Sends a request again when that helps. Give a mutation an idempotency key: it then has one effect.
import { ApiError } from './api.js'

const MAX_ATTEMPTS = 8
const BUSY_CODES = ['LOCKED', 'QUEUE_FULL']
const RETRYABLE_CODES = [undefined, 'INTERNAL', 'OUTCOME_UNKNOWN', 'RATE_LIMITED']

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Exponential backoff from half a second to 30 seconds, with full jitter. */
export const backoffMs = (retries: number) => Math.random() * Math.min(30_000, 500 * 2 ** retries)

/** Returns the outcome of the last attempt, or throws its error. */
export async function withRetry<Outcome>(send: () => Promise<Outcome>): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt === MAX_ATTEMPTS
    try {
      const outcome = await send()
      if (isLast || !isBusy(outcome)) return outcome
      await sleep(withJitter(outcome.retryAfterMs))
    } catch (error) {
      if (isLast || !isRetryable(error)) throw error
      await sleep(error.retryAfterMs ? withJitter(error.retryAfterMs) : backoffMs(attempt))
    }
  }
}

/** Whether the same request may succeed later: no response arrived, or the server asks for a retry. */
export function isRetryable(error: unknown): error is ApiError {
  return error instanceof ApiError && RETRYABLE_CODES.includes(error.code)
}

// Clients that were refused together do not come back together.
const withJitter = (ms: number) => ms * (1 + Math.random() / 2)

function isBusy(outcome: unknown): outcome is { retryAfterMs: number } {
  const { code, retryAfterMs } = outcome as { code?: string; retryAfterMs?: number }
  return code !== undefined && BUSY_CODES.includes(code) && retryAfterMs !== undefined
}
