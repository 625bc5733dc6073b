// Runs the audits of GraphQL over HTTP against the server at URL and prints {total, failures}.
import { auditServer } from 'graphql-http'

const results = await auditServer({ url: process.env.URL, fetchFn: fetch })
const failures = results
  .filter(({ status }) => status !== 'ok')
  .map(({ id, name, status, reason }) => `${id} ${name}: ${status}, ${reason}`)
console.log(JSON.stringify({ total: results.length, failures }))
