"""Rota as an A2A agent: other agents delegate work to the agents of the catalog."""
