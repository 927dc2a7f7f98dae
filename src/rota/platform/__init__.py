"""Infrastructure without product rules: database, errors, HTTP, crypto, IDs, clock, telemetry."""
