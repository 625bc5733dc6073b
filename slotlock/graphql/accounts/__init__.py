"""Accounts in the schema: registration, sign-in, passwords and sessions."""
