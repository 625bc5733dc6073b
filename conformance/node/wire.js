// A client under remote control: acts come in as lines of JSON, what the client tells goes out so.
import { createInterface } from 'node:readline'

const { URL, SOCKET_URL, TOKEN } = process.env
export const url = URL
export const socketUrl = SOCKET_URL
export const authorization = TOKEN ? `Bearer ${TOKEN}` : undefined

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

// Each library has a shape of its own for what went wrong.
function wrong(error) {
  const errors = Array.isArray(error) ? error : (error?.graphQLErrors ?? error?.errors)
  if (errors?.length) return { errors: errors.map(({ message, extensions }) => ({ message, extensions })) }
  const cause = error?.networkError ?? error
  if (typeof cause?.code === 'number') return { closed: cause.code }
  return { failed: String(cause?.message ?? cause) }
}

const shown = ({ data, error, errors }) => ({ data, ...(error || errors ? wrong(error ?? errors) : {}) })

// What every graphql-ws client needs to come back: by itself it gives up where nobody listens, and
// it would ask again for ever with a token that was refused (4403).
export const persistent = {
  retryAttempts: 600,
  retryWait: () => new Promise((done) => setTimeout(done, 100)),
  shouldRetry: (event) => event?.code !== 4403,
}

// `ask` resolves to {data, error}; `subscribe` takes a sink of {next, error, complete} and returns
// what ends the subscription.
export function obey({ ask, subscribe }) {
  const ends = new Map()
  const acts = {
    ask: ({ id, query, variables }) =>
      ask(query, variables).then(
        (answer) => tell({ id, ...shown(answer) }),
        (error) => tell({ id, ...wrong(error) }),
      ),
    subscribe: ({ id, query, variables }) => {
      const sink = {
        next: (answer) => tell({ id, ...shown(answer) }),
        error: (error) => tell({ id, ...wrong(error) }),
        complete: () => tell({ id, complete: true }),
      }
      ends.set(id, subscribe(query, variables, sink))
    },
    unsubscribe: ({ id }) => ends.get(id)(),
  }
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const act = JSON.parse(line)
    acts[act.act](act)
  })
  lines.on('close', () => process.exit(0))
}
