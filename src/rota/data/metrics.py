"""Metrics of retention and erasure."""

from prometheus_client import Counter, Gauge

DELETED = Counter(
    "rota_retention_deleted_total", "Rows that retention has deleted, by kind.", ["kind"]
)
for _kind in ("tasks", "steps", "events", "audit", "idempotency_keys"):
    DELETED.labels(_kind)
LAG_SECONDS = Gauge(
    "rota_retention_lag_seconds", "How long the account that waits longest is overdue."
)
ERASURES = Gauge("rota_erasures_running", "Accounts that are being erased.")
ERASURE_FAILURES = Counter(
    "rota_erasure_failures_total",
    "Attempts to continue an erasure that failed, by stage.",
    ["stage"],
)
EXPORTS = Counter("rota_exports_total", "Exports of accounts, by how they ended.", ["outcome"])
for _outcome in ("complete", "cut_off"):
    EXPORTS.labels(_outcome)
