"""The comparison of slotlock with three Node peers."""
