"""Use cases of the fair draw."""
