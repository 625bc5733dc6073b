"""Rules for bookings, holds and waiting lists."""
