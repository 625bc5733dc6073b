import type { CodegenConfig } from '@graphql-codegen/cli'

const config: CodegenConfig = {
  // Production has no introspection: the file is the source of the schema.
  schema: '../../schema.graphql',
  documents: 'src/operations.graphql',
  generates: {
    'src/generated.ts': {
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        scalars: { DateTime: 'string', EmailAddress: 'string', TimeZone: 'string' },
        useTypeImports: true,
      },
    },
  },
}

export default config
