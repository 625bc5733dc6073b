"""The export of what is stored about one user."""
