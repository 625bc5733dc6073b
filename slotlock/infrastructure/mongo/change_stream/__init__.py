"""What other processes write: one change stream, and those who listen to it."""
