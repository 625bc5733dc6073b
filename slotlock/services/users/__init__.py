"""Changes of users that concern their bookings."""
