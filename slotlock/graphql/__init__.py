"""The conversation: types, queries, mutations, subscriptions, limits, transports."""
