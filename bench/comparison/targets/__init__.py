"""The targets of the comparison: their programs, their slots and their users."""
