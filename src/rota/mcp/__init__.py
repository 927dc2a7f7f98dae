"""Tool servers: connecting them, watching them, and calling the tools that people accepted."""
