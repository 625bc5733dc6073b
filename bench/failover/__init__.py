"""How long bookings are impossible after a fault of MongoDB."""
