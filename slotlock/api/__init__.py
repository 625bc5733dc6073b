"""The ASGI application: settings, middleware, HTTP endpoints and the server."""
