"""GraphQL: types, queries, mutations, subscriptions, limits and transports."""
