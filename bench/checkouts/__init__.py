"""Compares two checkouts of slotlock."""
