"""Bookings in the schema: making and changing them, waiting lists and the booking queue."""
