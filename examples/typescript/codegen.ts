import type { CodegenConfig } from '@graphql-codegen/cli'

const config: CodegenConfig = {
  // Production has no introspection: the file is the source of the schema.
  schema: '../../schema.graphql',
  documents: 'src/operations.graphql',
  generates: {
    'src/generated.ts': {
      plugins: ['typescript-operations', 'typed-document-node'],
      config: {
        // In JSON every scalar of slotlock is a string. Without this, its type is `unknown`.
        scalars: {
          Date: 'string',
          DateTime: 'string',
          EmailAddress: 'string',
          LocalTime: 'string',
          TimeZone: 'string',
        },
        useTypeImports: true,
      },
    },
  },
}

export default config
