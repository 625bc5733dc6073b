"""Locks with fair queues, and their leases."""
