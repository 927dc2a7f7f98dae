"""A simulated Stripe server: the API, the payment page and webhooks.

No money moves. Tests can move its clock forward and inject faults.
"""
