"""Requests to addresses that users chose: signed, bounded, and never into the own network."""
