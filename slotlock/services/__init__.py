"""The use cases: acquire the lock, load, decide, commit and publish."""
