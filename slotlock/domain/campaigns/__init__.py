"""Campaigns and the terms that apply to their slots."""
