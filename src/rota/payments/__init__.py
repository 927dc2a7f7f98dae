"""Paying: what the service asks of a payment processor, and Stripe, which does it."""
