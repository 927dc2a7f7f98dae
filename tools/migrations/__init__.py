"""Checks that migrations can run while the service does, and the release before it still works."""
