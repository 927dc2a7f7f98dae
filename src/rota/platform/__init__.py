"""What knows nothing of the product: database, errors, HTTP, crypto, ids, clock, telemetry."""
