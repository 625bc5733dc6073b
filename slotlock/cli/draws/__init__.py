"""Draws on the command line: verify a record, and compare ways to give places."""
