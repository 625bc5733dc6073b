"""Campaigns in the schema: reading them and managing them."""
