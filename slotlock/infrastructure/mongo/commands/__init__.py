"""Commands to MongoDB that cost less than those of the driver."""
