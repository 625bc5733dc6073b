"""Copies of campaigns with their slots, moved by whole weeks."""
