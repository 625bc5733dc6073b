// @apollo/client: queries and mutations over HTTP, subscriptions over graphql-ws.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client/core'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { getMainDefinition } from '@apollo/client/utilities'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { authorization, reconnectOptions, runCommands, socketUrl, url } from './remote_control.js'

// The link uses the browser's WebSocket to classify errors; Node has one since version 22.
globalThis.WebSocket ??= WebSocket

const socket = createClient({
  ...reconnectOptions,
  url: socketUrl,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
})
const isSubscription = ({ query }) => getMainDefinition(query).operation === 'subscription'
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.split(
    isSubscription,
    new GraphQLWsLink(socket),
    new HttpLink({ uri: url, headers: authorization && { authorization } }),
  ),
})
const isMutation = (document) => getMainDefinition(document).operation === 'mutation'
const policies = { errorPolicy: 'all', fetchPolicy: 'no-cache' }

runCommands({
  execute: (text, variables) => {
    const document = gql(text)
    return isMutation(document)
      ? client.mutate({ mutation: document, variables, ...policies })
      : client.query({ query: document, variables, ...policies })
  },
  subscribe: (text, variables, sink) => {
    const subscription = client
      .subscribe({ query: gql(text), variables, ...policies })
      .subscribe(sink)
    return () => subscription.unsubscribe()
  },
})
