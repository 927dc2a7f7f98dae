"""Retention, export and erasure."""
