"""The acts: lock, look, decide, write, tell; one verb a function."""
