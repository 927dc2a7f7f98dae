"""Upgrades and rollbacks under load, between this release and the one before it."""
