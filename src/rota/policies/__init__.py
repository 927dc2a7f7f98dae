"""Policies of an account: who can decide, and about what."""
