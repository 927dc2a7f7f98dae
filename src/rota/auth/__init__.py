"""Who is calling: ID tokens, sessions, API keys, and the Caller every endpoint receives."""
