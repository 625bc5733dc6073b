"""The audit log and the notes that organizers' changes leave in it."""
