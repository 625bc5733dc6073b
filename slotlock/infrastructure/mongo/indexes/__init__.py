"""Indexes: which are missing, and who builds them without delaying a start."""
