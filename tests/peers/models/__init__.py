"""The wire formats of model providers, for the scripted model in tests/runs/model_server.py."""
