"""The cost of live updates: watchers, and bookings by others."""
