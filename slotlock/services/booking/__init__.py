"""Use cases of bookings and waiting lists."""
