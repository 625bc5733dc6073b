"""The soak run: users book while processes and servers are killed, and every promise is checked."""
