"""Executing commands on slots: locks, decisions, commits and idempotency."""
