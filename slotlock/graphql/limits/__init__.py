"""Limits on the size of documents and results, on rates, on open streams and on unread bytes."""
