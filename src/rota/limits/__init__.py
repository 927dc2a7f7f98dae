"""Rate limits: the rolling window, its response headers, and the guard that applies it."""
