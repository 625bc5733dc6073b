"""Rosters as CSV or Excel files: the endpoint, the process that builds a file, the two formats."""
