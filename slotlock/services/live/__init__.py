"""Live updates for subscribers."""
