"""Authentication: ID tokens, sessions, API keys, and the Caller that every endpoint receives."""
