"""What the router counts, by cell."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "rota_router_requests_total",
    "Requests that the router sent to a cell, by the class of the status.",
    ["cell", "status"],
)
FAILURES = Counter(
    "rota_router_failures_total",
    "Requests that a cell did not answer, by the reason.",
    ["cell", "reason"],
)
FIRST_BYTE_SECONDS = Histogram(
    "rota_router_first_byte_seconds",
    "Seconds from the start of a request to the head of the cell's response.",
    ["cell"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
CONNECTIONS = Gauge(
    "rota_router_connections", "Open connections from the router to a cell.", ["cell"]
)
SIGN_INS = Counter(
    "rota_router_sign_ins_total",
    "Sign-ins that the router sent to a cell: of people it knew, new ones, and chosen cells.",
    ["cell", "kind"],
)
REASONS = ("connect", "busy", "closed", "protocol", "timeout")


def announce(cell: str) -> None:
    """Series that exist from the start can be watched from the start."""
    for status in ("2xx", "4xx", "5xx"):
        REQUESTS.labels(cell, status)
    for reason in REASONS:
        FAILURES.labels(cell, reason)
    for kind in ("known", "new", "chosen"):
        SIGN_INS.labels(cell, kind)
    FIRST_BYTE_SECONDS.labels(cell)
    CONNECTIONS.labels(cell)
