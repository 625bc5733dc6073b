"""Slots with their bookings and waitlists."""
