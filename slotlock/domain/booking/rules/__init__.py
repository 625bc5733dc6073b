"""The rules of bookings: pure functions from loaded state to decisions."""
