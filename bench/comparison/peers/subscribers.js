'use strict'
// Opens subscriptions over graphql-transport-ws, and measures when a change reaches all of them.
// Reads JSON objects, one a line, and answers each with one:
//   {url, count, query, marker, hasInitialState}  opens the subscriptions  {ready}
//   {httpUrl, token, body, value}  sends the change  {delivered, toFirstMs, toLastMs, response}
// A message has received the change if `value` follows the text `marker` in it.
const WebSocket = require('ws'), http = require('http'), readline = require('readline')
const OPENING_AT_ONCE = 50, TIMEOUT_MS = 20000
const agent = new http.Agent({ keepAlive: true })
const now = () => Number(process.hrtime.bigint()) / 1e6
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

let marker = ''
let subscribed = 0
let change = null

function receive (socket, data) {
  const at = data.indexOf(marker)
  if (at < 0 && data.includes('"ping"')) socket.send('{"type":"pong"}')
  if (at < 0 || !change) return
  const value = parseInt(data.subarray(at + marker.length, at + marker.length + 12), 10)
  if (value !== change.value || socket.lastValue === value) return
  socket.lastValue = value
  change.lastAt = now()
  if (change.delivered++ === 0) change.firstAt = change.lastAt
  if (change.delivered === subscribed) change.finish()
}

function open ({ url, query, hasInitialState }) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, 'graphql-transport-ws', { perMessageDeflate: false })
    let isSubscribed = false
    const finish = () => { isSubscribed = true; subscribed++; resolve() }
    socket.on('open', () => socket.send('{"type":"connection_init"}'))
    socket.on('error', reject)
    socket.on('close', (code, reason) => reject(new Error(`closed: ${code} ${reason}`)))
    socket.on('message', (data) => {
      if (isSubscribed) return receive(socket, data)
      const { type, payload } = JSON.parse(data)
      if (type === 'connection_ack') {
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }))
        if (!hasInitialState) finish()
      } else if (type === 'next') finish()
      else if (type === 'ping') socket.send('{"type":"pong"}')
      else reject(new Error(`${type}: ${JSON.stringify(payload)}`))
    })
  })
}

async function openAll (options) {
  marker = options.marker
  for (let opened = 0; opened < options.count; opened += OPENING_AT_ONCE) {
    const count = Math.min(OPENING_AT_ONCE, options.count - opened)
    await Promise.all(Array.from({ length: count }, () => open(options)))
  }
  // Without an initial state, nothing shows when the last subscription is active.
  await sleep(500)
  return { ready: subscribed }
}

function post ({ httpUrl, token, body }) {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json', Authorization: `Bearer ${token}` }
    const request = http.request(httpUrl, { method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.on('data', (data) => { text += data })
      response.on('end', () => resolve(`${response.statusCode} ${text}`))
    })
    request.on('error', reject)
    request.end(body)
  })
}

async function measure (request) {
  change = { value: request.value, delivered: 0, firstAt: NaN, lastAt: NaN }
  const all = new Promise((resolve) => { change.finish = resolve })
  const startedAt = now()
  const response = await post(request)
  await Promise.race([all, sleep(TIMEOUT_MS)])
  const { delivered, firstAt, lastAt } = change
  change = null
  return { delivered, toFirstMs: firstAt - startedAt, toLastMs: lastAt - startedAt, response }
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const request = JSON.parse(line)
  try {
    console.log(JSON.stringify(await (request.count ? openAll(request) : measure(request))))
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }))
  }
}).on('close', () => process.exit(0))
