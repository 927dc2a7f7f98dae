"""Rota as an MCP server: the same tasks and agents, as tools for other programs."""
