"""Other people's tools and clients against running servers: `make conformance`, one table."""
