"""Validation, text and pagination for every capability."""
