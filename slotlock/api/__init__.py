"""The building: the ASGI app, settings, wiring, plain HTTP and the command line."""
