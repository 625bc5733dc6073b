"""Campaigns and their statistics."""
