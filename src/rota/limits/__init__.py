"""How many requests a caller may make: the rolling window, its headers, and whose window it is."""
