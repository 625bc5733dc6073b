"""Fuzzing of the whole schema with schemathesis, with and without a signed-in user."""
