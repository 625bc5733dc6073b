"""`slotlock simulate`: a crowd that rushes at a running server, over HTTP and WebSocket alone."""
