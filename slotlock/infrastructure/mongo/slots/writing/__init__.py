"""Writes of slots: additions of bookings, which are settled, and transactions."""
