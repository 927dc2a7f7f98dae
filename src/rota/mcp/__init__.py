"""Tool servers: connections, health checks, and calls to the tools that people accepted."""
