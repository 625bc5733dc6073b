"""Limits on the size of documents and results, on rates and on open streams."""
