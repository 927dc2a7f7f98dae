"""Runs hosted tasks: the workflow, its activities, the agent loop, models and tools."""
