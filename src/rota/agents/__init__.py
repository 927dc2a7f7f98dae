"""The catalog of agents: files and versions, search, and which tier can use which agent."""
