"""Plans: monthly subscriptions, and the tiers that they give to accounts."""
