"""Notifications: emails and chat messages to the people of an account."""
