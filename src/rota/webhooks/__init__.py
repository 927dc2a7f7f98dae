"""Webhooks: the events of an account, sent to endpoints of its owner."""
