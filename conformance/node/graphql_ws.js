// graphql-ws: all operations over one socket.
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { authorization, reconnectOptions, runCommands, socketUrl } from './remote_control.js'

const client = createClient({
  ...reconnectOptions,
  url: socketUrl,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
})

runCommands({
  execute: (query, variables) =>
    new Promise((resolve, reject) => {
      let response
      client.subscribe(
        { query, variables },
        { next: (result) => (response = result), error: reject, complete: () => resolve(response) },
      )
    }),
  subscribe: (query, variables, sink) => client.subscribe({ query, variables }, sink),
})
