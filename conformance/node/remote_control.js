// A client under remote control: commands arrive as lines of JSON, and responses leave the same way.
import { createInterface } from 'node:readline'

const { URL, SOCKET_URL, TOKEN } = process.env
export const url = URL
export const socketUrl = SOCKET_URL
export const authorization = TOKEN ? `Bearer ${TOKEN}` : undefined

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

// Each library reports errors in a shape of its own.
function toFailure(error) {
  const errors = Array.isArray(error) ? error : (error?.graphQLErrors ?? error?.errors)
  if (errors?.length) return { errors: errors.map(({ message, extensions }) => ({ message, extensions })) }
  const cause = error?.networkError ?? error
  if (typeof cause?.code === 'number') return { closed: cause.code }
  return { failed: String(cause?.message ?? cause) }
}

const toResponse = ({ data, error, errors }) => ({ data, ...(error || errors ? toFailure(error ?? errors) : {}) })

// Options that a graphql-ws client needs to reconnect: by default it gives up when no server listens,
// and it would retry a rejected token (4403) forever.
export const reconnectOptions = {
  retryAttempts: 600,
  retryWait: () => new Promise((done) => setTimeout(done, 100)),
  shouldRetry: (event) => event?.code !== 4403,
}

// `execute` resolves to {data, error}; `subscribe` takes a sink of {next, error, complete} and returns
// a function that ends the subscription.
export function runCommands({ execute, subscribe }) {
  const unsubscribers = new Map()
  const handlers = {
    execute: ({ id, query, variables }) =>
      execute(query, variables).then(
        (response) => send({ id, ...toResponse(response) }),
        (error) => send({ id, ...toFailure(error) }),
      ),
    subscribe: ({ id, query, variables }) => {
      const sink = {
        next: (response) => send({ id, ...toResponse(response) }),
        error: (error) => send({ id, ...toFailure(error) }),
        complete: () => send({ id, complete: true }),
      }
      unsubscribers.set(id, subscribe(query, variables, sink))
    },
    unsubscribe: ({ id }) => unsubscribers.get(id)(),
  }
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const message = JSON.parse(line)
    handlers[message.command](message)
  })
  lines.on('close', () => process.exit(0))
}
