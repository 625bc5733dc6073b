"""Inputs with which organizers create and change slots."""
