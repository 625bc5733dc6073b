"""Real clients against a running server: one list of checks for all of them."""
