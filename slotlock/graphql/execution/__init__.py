"""Parsing, caching and executing documents."""
