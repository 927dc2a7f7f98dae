"""Standing rules: calls of a tool that an agent can make without a review."""
