// What the booking code needs of a GraphQL client. urql.ts and apollo.ts implement it.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core'

export interface Api {
  /** Sends a query once; throws ApiError. */
  query<Data, Variables extends AnyVariables>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
  ): Promise<Data>

  /** Sends a mutation once; throws ApiError. */
  mutate<Data, Variables extends AnyVariables>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
  ): Promise<Data>

  /** Subscribes, also across lost connections, and returns a function that ends the subscription. */
  subscribe<Data, Variables extends AnyVariables>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
    sink: Sink<Data>,
  ): () => void
}

export type AnyVariables = Record<string, unknown>

export interface Sink<Data> {
  next: (data: Data) => void
  error: (error: Error) => void
}

/** An entry of `errors` in a response. */
export interface ErrorEntry {
  readonly message: string
  readonly extensions?: Readonly<Record<string, unknown>>
}

/** A request that failed. Without a response, `code` is undefined. */
export class ApiError extends Error {
  readonly code: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(message: string, extensions: Readonly<Record<string, unknown>> = {}) {
    super(message)
    const { code, retryAfterMs } = extensions
    this.code = typeof code === 'string' ? code : undefined
    this.retryAfterMs = typeof retryAfterMs === 'number' ? retryAfterMs : undefined
  }

  static fromErrors([first]: readonly ErrorEntry[]): ApiError {
    return new ApiError(first?.message ?? 'No response.', first?.extensions)
  }
}

export function isUnauthenticated(errors: readonly ErrorEntry[]): boolean {
  return errors.some(({ extensions }) => extensions?.code === 'UNAUTHENTICATED')
}
