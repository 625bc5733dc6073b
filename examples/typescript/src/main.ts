// Runs the tour with the client named on the command line: urql or apollo.
import WebSocket from 'ws'
import { apolloApi, createApolloClient } from './apollo.js'
import { Session } from './session.js'
import { createSocket } from './socket.js'
import { tour } from './tour.js'
import type { User } from './tour.js'
import { createUrqlClient, urqlApi } from './urql.js'

const {
  SLOTLOCK_URL: url = 'http://127.0.0.1:8000/graphql',
  SLOTLOCK_ADMIN_EMAIL: email = 'admin@slotlock.localhost',
  SLOTLOCK_ADMIN_PASSWORD: password = '',
} = process.env

// Browsers, and Node since version 22, have a WebSocket of their own.
Object.assign(globalThis, { WebSocket: globalThis.WebSocket ?? WebSocket })

function newUser(): User {
  const session = new Session(url)
  const socket = createSocket(session)
  const api =
    process.argv[2] === 'apollo'
      ? apolloApi(createApolloClient(session, socket))
      : urqlApi(createUrqlClient(session, socket))
  return { session, api }
}

// At once: the requests of an app are repeated for a minute.
await fetch(url).catch((error: Error) => stop(`${url} does not respond: ${String(error.cause ?? error)}`))
await tour(newUser, { email, password }).catch((error: Error) => stop(error.message))

function stop(reason: string): never {
  console.error(reason)
  process.exit(1)
}
