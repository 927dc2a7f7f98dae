"""Metrics of the database connections of a process."""

from typing import Any

import asyncpg
from prometheus_client import Counter, Gauge

TIMEOUTS = Counter(
    "rota_database_timeouts_total",
    "Transactions that waited too long for a connection, a lock or a statement.",
    ["kind"],
)
for _kind in ("pool", "lock", "statement"):
    # From the start, so that the first timeout is an increase.
    TIMEOUTS.labels(_kind)
CONNECTIONS_USED = Gauge("rota_database_connections_used", "Database connections in use.")
CONNECTIONS_MAX = Gauge(
    "rota_database_connections_max", "Database connections that the process can open."
)


def watch(pool: Any, size: int) -> None:
    """Reports the connections of a pool when the metrics are read."""
    CONNECTIONS_MAX.set(size)
    CONNECTIONS_USED.set_function(lambda: pool.get_size() - pool.get_idle_size())


def count_timeout(error: BaseException) -> None:
    if isinstance(error, asyncpg.LockNotAvailableError):
        TIMEOUTS.labels("lock").inc()
    elif isinstance(error, asyncpg.QueryCanceledError):
        TIMEOUTS.labels("statement").inc()
