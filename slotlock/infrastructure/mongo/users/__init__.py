"""Users, sessions and invitations."""
