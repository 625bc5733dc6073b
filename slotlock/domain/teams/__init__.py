"""Teams, their members and invitations."""
