"""The codes of bookings that a scanner at the door reads."""
