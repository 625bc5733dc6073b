"""Reads of slots for clients: what an operation selects, and nothing else."""
