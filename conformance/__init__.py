"""Third-party tools and clients against running servers: `make conformance`, one table."""
