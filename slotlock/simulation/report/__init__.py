"""The output of a simulation."""
