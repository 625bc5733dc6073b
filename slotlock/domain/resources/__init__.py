"""Resources as things of their own: rooms, teachers, equipment."""
