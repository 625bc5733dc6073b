// Runs graphql-eslint's recommended schema rules on the file SCHEMA and prints {rules, failures}.
import plugin from '@graphql-eslint/eslint-plugin'
import { ESLint } from 'eslint'
import { readFile } from 'node:fs/promises'

const recommended = plugin.configs['flat/schema-recommended'].rules
// Decision 0024: most types are values and outcomes without identity; the others implement Node.
const { '@graphql-eslint/strict-id-in-types': _, ...rules } = recommended
const schema = await readFile(process.env.SCHEMA, 'utf8')

const eslint = new ESLint({
  overrideConfigFile: true,
  overrideConfig: {
    files: ['**/*.graphql'],
    languageOptions: {
      parser: plugin.parser,
      parserOptions: { graphQLConfig: { schema } },
    },
    plugins: { '@graphql-eslint': plugin },
    rules,
  },
})
const [result] = await eslint.lintText(schema, { filePath: 'schema.graphql' })
// "username" is one word, which other APIs use as well.
const failures = result.messages
  .filter(({ message }) => message !== 'Field "username" starts with the name of the parent type "User"')
  .map(({ ruleId, line, message }) => `${ruleId}, line ${line}: ${message}`)
console.log(JSON.stringify({ rules: Object.keys(rules), failures }))
