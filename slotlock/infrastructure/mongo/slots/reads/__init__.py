"""Reads of slots: what an operation of a client selects, or what a decision needs."""
