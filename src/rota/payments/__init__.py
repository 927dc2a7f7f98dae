"""Payments: the interface to a payment processor, and Stripe behind it."""
