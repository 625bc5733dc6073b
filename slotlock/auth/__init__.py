"""Who is asking: passwords, tokens, sessions."""
