"""A load simulation: users that rush at a running server over HTTP and WebSocket."""
