"""Slots in the schema: reading them, managing them and following them live."""
