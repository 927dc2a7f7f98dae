"""The task resource: its states, reviews, and endpoints."""
