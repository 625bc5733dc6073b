"""What operators see of a request: its id, its duration and its trace."""
