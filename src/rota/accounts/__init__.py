"""Users, accounts, and the members of companies."""
