"""The rules for new passwords, and the list of common ones."""
