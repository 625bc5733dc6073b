// graphql-ws: everything over the one socket.
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { authorization, obey, persistent, socketUrl } from './wire.js'

const client = createClient({
  ...persistent,
  url: socketUrl,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
})

obey({
  ask: (query, variables) =>
    new Promise((done, fail) => {
      let answer
      client.subscribe(
        { query, variables },
        { next: (told) => (answer = told), error: fail, complete: () => done(answer) },
      )
    }),
  subscribe: (query, variables, sink) => client.subscribe({ query, variables }, sink),
})
