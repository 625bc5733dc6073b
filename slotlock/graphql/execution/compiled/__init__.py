"""Compiled execution of GraphQL operations, for any schema of graphql-core or Strawberry."""
