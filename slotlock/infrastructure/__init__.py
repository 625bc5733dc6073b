"""Everything that talks to MongoDB and Redis. No document and no Redis key leaves this package."""
