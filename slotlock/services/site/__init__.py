"""The site as it is now."""
