"""The outbox, and the kinds of mail."""
