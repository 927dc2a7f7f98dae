"""Plans: what accounts pay for by the month, and what that gives them."""
