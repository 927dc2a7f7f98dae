"""Receipts: a signed document of what a task did, who decided about it and what it cost."""
