"""Users in the schema: their accounts, groups and bans, and their calendar feeds."""
