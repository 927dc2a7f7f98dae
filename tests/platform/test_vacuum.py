"""Large tables are vacuumed early, and the server's bounds are reported."""

import asyncpg
from prometheus_client import REGISTRY

from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform import database_server
from tests.service import Service

# The largest share of a table's rows that can be dead before a vacuum.
SHARE = 0.01
OPTIONS = """
    SELECT c.relname AS name, p.relname AS parent, o.option_name AS option, o.option_value AS value
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid AND c.relkind = 'r'
    JOIN pg_class p ON p.oid = i.inhparent
    LEFT JOIN pg_options_to_table(c.reloptions) o ON true
    ORDER BY 1, 3
"""


async def options(service: Service) -> dict[str, dict[str, dict[str, str]]]:
    """The storage options of each partition, by table."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    async with service.owner() as connection:
        for row in await connection.fetch(OPTIONS):
            partition = found.setdefault(row["parent"], {}).setdefault(row["name"], {})
            if row["option"]:
                partition[row["option"]] = row["value"]
    return found


async def test_every_partition_is_vacuumed_after_one_row_in_a_hundred(service_a: Service) -> None:
    tables = await options(service_a)
    assert {"tasks", "steps", "events", "entries", "holds", "audit_entries"} <= tables.keys()
    for table, partitions in tables.items():
        # A partition that differs from the others would be forgotten.
        assert len({tuple(each.items()) for each in partitions.values()}) == 1, table
        for each in partitions.values():
            assert float(each["autovacuum_vacuum_scale_factor"]) <= SHARE, table
            assert float(each["autovacuum_vacuum_insert_scale_factor"]) <= SHARE, table


async def test_rows_that_never_change_are_frozen_by_their_first_vacuum(service_a: Service) -> None:
    tables = await options(service_a)
    for table in ("events", "entries", "audit_entries"):
        for each in tables[table].values():
            assert each["autovacuum_freeze_min_age"] == "0", table


async def test_a_worker_reports_how_near_the_server_is_to_its_bounds(
    service_a: Service, stack: Stack
) -> None:
    async with Composition(service_a.settings, pool_size=2) as parts:
        await database_server.measure(parts.db)
        one = value("rota_postgres_connections")
        more = [await asyncpg.connect(service_a.database_url) for _ in range(5)]
        await database_server.measure(parts.db)
        assert value("rota_postgres_connections") >= one + 3
        for connection in more:
            await connection.close()
    assert value("rota_postgres_connections_max") == 197
    assert value("rota_postgres_transaction_age") > 0
    assert value("rota_postgres_dead_rows") >= 0


def value(name: str) -> float:
    found = REGISTRY.get_sample_value(name)
    assert found is not None
    return found
