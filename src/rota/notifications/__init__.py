"""Notifications: mails and chat messages to the people of an account."""
