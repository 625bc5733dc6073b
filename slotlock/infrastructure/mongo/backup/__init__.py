"""Backups: a consistent copy of the database in one file, and its way back."""
