"""What is promised beside the order of each slot: one slot a key, limits, sessions that last."""
