"""Check-in: codes of bookings, and the mutations that record who came."""
