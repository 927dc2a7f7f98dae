"""Point-in-time recovery: what must hold after PostgreSQL was restored to an earlier moment."""
