"""Calendars that programs subscribe to (iCalendar, RFC 5545)."""
