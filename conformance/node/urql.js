// @urql/core with its defaults: queries by GET while the address is short, mutations by POST.
// Subscriptions use graphql-ws.
import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { authorization, reconnectOptions, runCommands, socketUrl, url } from './remote_control.js'

const socket = createClient({
  ...reconnectOptions,
  url: socketUrl,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
})
const client = new Client({
  url,
  requestPolicy: 'network-only',
  fetchOptions: {
    headers: { ...(authorization && { authorization }) },
  },
  exchanges: [
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
      }),
    }),
  ],
})
const isMutation = (query) => query.trimStart().startsWith('mutation')

runCommands({
  execute: (query, variables) =>
    (isMutation(query) ? client.mutation(query, variables) : client.query(query, variables)).toPromise(),
  subscribe: (query, variables, sink) => {
    const { unsubscribe } = client
      .subscription(query, variables)
      .subscribe(({ data, error }) => sink.next({ data, error }))
    return unsubscribe
  },
})
