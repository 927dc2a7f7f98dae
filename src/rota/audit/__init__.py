"""The audit trail: reads, verifies, exports and signs what `rota.platform.audit` records."""
