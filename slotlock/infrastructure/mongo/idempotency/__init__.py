"""The stored outcomes of idempotency keys."""
