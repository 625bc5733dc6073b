"""Draws: ranked wishes, and places by lot."""
