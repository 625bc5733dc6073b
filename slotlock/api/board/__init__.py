"""The board as a browser gets it: its page, and its files."""
