"""Tickets of the admission queue: references, status and outcomes."""
