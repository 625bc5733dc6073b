"""Stores wishes and draws."""
