"""Background tasks: the hold sweeper, the interrupted work and the admission workers."""
