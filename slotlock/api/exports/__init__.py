"""Rosters as files: who asks, the process that builds one, and the two forms."""
