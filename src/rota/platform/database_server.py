"""Metrics of the PostgreSQL server: how near it is to the bounds that stop a deployment."""

from prometheus_client import Gauge

from rota.platform.db import Database

CONNECTIONS = Gauge(
    "rota_postgres_connections", "Connections of all clients to the PostgreSQL server."
)
CONNECTIONS_MAX = Gauge(
    "rota_postgres_connections_max", "Connections that the PostgreSQL server accepts from clients."
)
TRANSACTION_AGE = Gauge(
    "rota_postgres_transaction_age",
    "Transaction IDs since the oldest one that is not frozen. PostgreSQL stops at 2 billion.",
)
DEAD_ROWS = Gauge(
    "rota_postgres_dead_rows", "Rows of all tables that are deleted and not yet vacuumed."
)


async def measure(db: Database) -> None:
    """Sets the gauges. Every worker reports the same."""
    async with db.relay() as connection:
        row = await connection.fetchrow(
            """
            SELECT (SELECT sum(numbackends) FROM pg_stat_database)::int AS connections,
                current_setting('max_connections')::int
                    - current_setting('superuser_reserved_connections')::int AS most,
                (SELECT max(age(datfrozenxid)) FROM pg_database) AS age,
                (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables)::bigint AS dead
            """
        )
    CONNECTIONS.set(row["connections"])
    CONNECTIONS_MAX.set(row["most"])
    TRANSACTION_AGE.set(row["age"])
    DEAD_ROWS.set(row["dead"])
