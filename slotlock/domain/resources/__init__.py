"""Resources as things of their own: rooms, persons, equipment."""
