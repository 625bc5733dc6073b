"""Rules for creating, editing and listing slots."""
