"""Reports in the schema: campaign statistics, users without a booking, and the audit log."""
