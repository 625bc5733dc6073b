"""Everything that reads and writes Redis."""
