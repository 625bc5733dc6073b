// Asks the server at URL for its schema, with all options of graphql-js, compares it with the file
// SCHEMA, and prints {failures}.
import { buildClientSchema, buildSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema } from 'graphql'
import { readFile } from 'node:fs/promises'

const query = getIntrospectionQuery({
  descriptions: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
})
const response = await fetch(process.env.URL, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query }),
})
const { data, errors } = await response.json()
const failures = errors ? errors.map(({ message }) => message) : []
if (failures.length === 0) {
  const shown = (schema) => printSchema(lexicographicSortSchema(schema))
  const expected = buildSchema(await readFile(process.env.SCHEMA, 'utf8'))
  if (shown(buildClientSchema(data)) !== shown(expected)) failures.push('the schema differs from the file')
}
console.log(JSON.stringify({ failures }))
