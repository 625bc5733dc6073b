import { ApolloClient, ApolloLink, CombinedGraphQLErrors, HttpLink, InMemoryCache } from '@apollo/client'
import { SetContextLink } from '@apollo/client/link/context'
import { ErrorLink } from '@apollo/client/link/error'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { OperationTypeNode } from 'graphql'
import type { Client as Socket } from 'graphql-ws'
import { from, switchMap, throwError } from 'rxjs'
import { ApiError, isUnauthenticated } from './api.js'
import type { Api } from './api.js'
import { fetchWithTimeout } from './fetch.js'
import type { Session } from './session.js'

/** A client for Apollo's `ApolloProvider` and hooks. */
export function createApolloClient(session: Session, socket: Socket): ApolloClient {
  const refreshLink = new ErrorLink(({ error, operation, forward }) => {
    const isRejected = CombinedGraphQLErrors.is(error) && isUnauthenticated(error.errors)
    if (!isRejected || !session.isSignedIn) return
    return from(session.refresh()).pipe(
      switchMap((isOpen) => (isOpen ? forward(operation) : throwError(() => error))),
    )
  })
  const tokenLink = new SetContextLink(({ headers }) => ({
    headers: { ...headers, ...session.authorization },
  }))
  return new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(socket),
      // The refresh comes before the token, so that the second attempt has the new one.
      ApolloLink.from([refreshLink, tokenLink, new HttpLink({ uri: session.url, fetch: fetchWithTimeout })]),
    ),
  })
}

export function apolloApi(client: ApolloClient): Api {
  return {
    query: (query, variables) =>
      client.query({ query, variables, fetchPolicy: 'network-only' }).then(dataOf, rethrow),
    mutate: (mutation, variables) =>
      client.mutate({ mutation, variables, fetchPolicy: 'no-cache' }).then(dataOf, rethrow),
    subscribe(query, variables, sink) {
      const subscription = client.subscribe({ query, variables }).subscribe(({ data, error }) => {
        if (error) sink.error(toApiError(error))
        else if (data) sink.next(data)
      })
      return () => subscription.unsubscribe()
    },
  }
}

function dataOf<Data>({ data }: { data?: Data }): Data {
  if (data == null) throw new ApiError('No response.')
  return data
}

function rethrow(error: unknown): never {
  throw toApiError(error)
}

function toApiError(error: unknown): ApiError {
  return CombinedGraphQLErrors.is(error) ? ApiError.fromErrors(error.errors) : new ApiError(String(error))
}
