"""The catalog of agents: its files and their versions, search, and who may use which."""
