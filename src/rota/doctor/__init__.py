"""`rota admin doctor`: checks everything that an installation needs, and says how to fix it."""
