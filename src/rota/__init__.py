"""Rota runs tasks with AI agents and lets people approve what the agents do."""
