"""Refusals of bookings, one file for each kind of request, and limits for all of them."""
