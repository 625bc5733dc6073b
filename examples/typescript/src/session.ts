// Signs in, stores the tokens and refreshes them. It needs no GraphQL client, so both share it.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core'
import { print } from 'graphql'
import { ApiError } from './api.js'
import { fetchWithTimeout } from './fetch.js'
import { LoginDocument, RefreshSessionDocument, RegisterDocument } from './generated.js'
import type { LoginMutation, RegisterMutation } from './generated.js'
import { isRetryable, withRetry } from './retry.js'

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
}

/** Where the tokens are between two starts of the app, such as localStorage or the keychain. */
export interface TokenStore {
  load(): Tokens | null
  save(tokens: Tokens | null): void
}

export function memoryStore(): TokenStore {
  let stored: Tokens | null = null
  return { load: () => stored, save: (tokens) => (stored = tokens) }
}

type SignInOutcome = LoginMutation['login'] | RegisterMutation['register']

export class Session {
  private refreshing: Promise<boolean> | undefined

  constructor(
    readonly url: string,
    private readonly store: TokenStore = memoryStore(),
  ) {}

  get isSignedIn(): boolean {
    return this.store.load() !== null
  }

  /** The header of requests, and the payload of `connection_init`; empty without a session. */
  get authorization(): Record<string, string> {
    const tokens = this.store.load()
    return tokens ? { authorization: `Bearer ${tokens.accessToken}` } : {}
  }

  async login(email: string, password: string): Promise<SignInOutcome> {
    const variables = { input: { email, password } }
    return this.open(await withRetry(async () => (await this.post(LoginDocument, variables)).login))
  }

  /** If the response was lost, the account may exist: then the password signs in. */
  async register(name: string, email: string, password: string): Promise<SignInOutcome> {
    try {
      const { register } = await this.post(RegisterDocument, { input: { name, email, password } })
      return this.open(register)
    } catch (error) {
      if (!isRetryable(error)) throw error
      return this.login(email, password)
    }
  }

  /**
   * Exchanges the refresh token for new tokens; returns false if the user has to sign in again.
   * Requests that need new tokens at the same time share one exchange.
   */
  refresh(): Promise<boolean> {
    this.refreshing ??= this.exchange().finally(() => (this.refreshing = undefined))
    return this.refreshing
  }

  /** The same token may be sent again for 30 seconds, if the response was lost. */
  private async exchange(): Promise<boolean> {
    const tokens = this.store.load()
    if (!tokens) return false
    const { refreshToken } = tokens
    const outcome = await withRetry(
      async () => (await this.post(RefreshSessionDocument, { refreshToken })).refreshSession,
    )
    this.store.save(outcome.__typename === 'Session' ? outcome : null)
    return this.isSignedIn
  }

  private open(outcome: SignInOutcome): SignInOutcome {
    if (outcome.__typename === 'Session') this.store.save(outcome)
    return outcome
  }

  /** Sends an operation without identity. */
  private async post<Data, Variables>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
  ): Promise<Data> {
    const response = await fetchWithTimeout(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/graphql-response+json, application/json',
      },
      body: JSON.stringify({ query: print(document), variables }),
    }).catch((error: unknown) => Promise.reject(new ApiError(String(error))))
    const { data, errors } = await response.json().catch(() => ({}))
    if (errors || !data) throw ApiError.fromErrors(errors ?? [])
    return data
  }
}
