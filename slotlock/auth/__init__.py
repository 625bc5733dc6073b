"""Authentication: passwords, tokens, sessions and accounts."""
