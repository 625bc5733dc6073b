"""Rosters, calendars and campaign statistics."""
