// One WebSocket for all subscriptions. It reconnects forever, with a new token if the server wants one.
import { createClient } from 'graphql-ws'
import type { Client } from 'graphql-ws'
import { backoffMs, sleep } from './retry.js'
import type { Session } from './session.js'

const FORBIDDEN = 4403

export function createSocket(session: Session): Client {
  let isTokenRejected = false
  return createClient({
    url: session.url.replace(/^http/, 'ws'),
    // Evaluated for every connection, so that each has the newest token.
    connectionParams: async () => {
      if (isTokenRejected) await session.refresh()
      isTokenRejected = false
      return session.authorization
    },
    on: {
      closed: (event) => {
        isTokenRejected ||= (event as CloseEvent).code === FORBIDDEN
      },
    },
    // By default graphql-ws gives up after five attempts, and at once if no server listens.
    retryAttempts: Infinity,
    shouldRetry: () => true,
    retryWait: (retries) => sleep(backoffMs(retries)),
  })
}
