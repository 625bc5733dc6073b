"""Plain HTTP endpoints beside GraphQL."""
