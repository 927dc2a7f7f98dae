"""Writes the boards and the rules of the service level objectives in `deploy/monitoring`.

python -m tools.monitoring
"""
