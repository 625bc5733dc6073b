"""Plain HTTP endpoints outside GraphQL."""
