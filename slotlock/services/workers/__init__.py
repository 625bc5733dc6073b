"""Background tasks: the hold sweeper and the admission workers."""
