"""Everything that reads and writes MongoDB."""
