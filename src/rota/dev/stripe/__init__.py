"""A stand-in for Stripe on this machine: its wire, a page to pay on, and webhooks.

No money moves. Subscriptions live by a clock that can be turned, and what goes
wrong at a payment processor can be made to go wrong here.
"""
