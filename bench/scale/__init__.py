"""The cost of a deployment at rest, and how it grows with processes, slots, sockets and users."""
