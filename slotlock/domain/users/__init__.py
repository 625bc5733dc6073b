"""Users: accounts, roles, groups, bans and imports."""
