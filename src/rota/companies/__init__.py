"""Companies, their members, and invitations."""
