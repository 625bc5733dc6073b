"""Background tasks of a process: queue workers, and in server processes the hold sweeper."""
