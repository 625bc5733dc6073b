"""Use cases of slots: queries, edits, series and calendar feeds."""
