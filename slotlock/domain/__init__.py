"""The booking rules: pure and synchronous functions on immutable values."""
