"""Use cases of campaigns: create, edit, publish, list and report."""
