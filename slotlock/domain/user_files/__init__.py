"""Users from a file: its columns and cells, and what it changes in the accounts."""
