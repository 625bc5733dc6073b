"""Meetings, timetables, recurrence rules and time zones."""
