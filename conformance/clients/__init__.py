"""Runs the same list of checks with each client library against a running server."""
