"""The outbox, and what its reader reads."""
