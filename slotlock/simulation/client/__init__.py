"""The clients of simulated users."""
