"""The outbox: what changed becomes an entry, and an entry becomes a mail."""
