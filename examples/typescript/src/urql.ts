import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import type { CombinedError, OperationResult } from '@urql/core'
import { authExchange } from '@urql/exchange-auth'
import type { Client as Socket } from 'graphql-ws'
import { ApiError, isUnauthenticated } from './api.js'
import type { Api } from './api.js'
import { fetchWithTimeout } from './fetch.js'
import type { Session } from './session.js'

/** A client for urql's `Provider` and hooks; add `cacheExchange` first if you want a cache. */
export function createUrqlClient(session: Session, socket: Socket): Client {
  return new Client({
    url: session.url,
    fetch: fetchWithTimeout,
    requestPolicy: 'network-only',
    exchanges: [
      authExchange(async (utilities) => ({
        addAuthToOperation: (operation) => utilities.appendHeaders(operation, session.authorization),
        didAuthError: (error) => session.isSignedIn && isUnauthenticated(error.graphQLErrors),
        refreshAuth: async () => void (await session.refresh()),
      })),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query, variables }) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe({ query: query ?? '', variables }, sink),
          }),
        }),
      }),
    ],
  })
}

export function urqlApi(client: Client): Api {
  return {
    query: async (document, variables) => dataOf(await client.query(document, variables)),
    mutate: async (document, variables) => dataOf(await client.mutation(document, variables)),
    subscribe(document, variables, sink) {
      const { unsubscribe } = client.subscription(document, variables).subscribe(({ data, error }) => {
        if (error) sink.error(toApiError(error))
        else if (data) sink.next(data)
      })
      return unsubscribe
    },
  }
}

function dataOf<Data>({ data, error }: OperationResult<Data>): Data {
  if (error || data == null) throw toApiError(error)
  return data
}

function toApiError(error: CombinedError | undefined): ApiError {
  return error?.graphQLErrors.length
    ? ApiError.fromErrors(error.graphQLErrors)
    : new ApiError(error?.message ?? 'No response.')
}
