"""Every table of accounts says what happens to it in an export and in an erasure."""

from rota.data.tables import ERASED, EXPORTED, TABLES
from tests.data.world import World

# Tables without rows of an account or a user, and views.
OWNER_COLUMNS = ("account_id", "user_id")


async def test_every_table_with_an_owner_is_listed(world_a: World) -> None:
    """A new table fails here until `rota.data.tables` says whether erasure deletes its rows, or why
    they stay."""
    async with world_a.service.owner() as connection:
        rows = await connection.fetch(
            """
            SELECT c.relname, array_agg(a.attname::text) AS columns FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
              AND NOT c.relispartition
            GROUP BY c.relname
            """
        )
    columns = {row["relname"]: set(row["columns"]) for row in rows}
    owned = {name for name, found in columns.items() if found & set(OWNER_COLUMNS)}
    listed = {table.name for table in TABLES}
    assert owned | {"accounts", "users"} == listed
    for table in TABLES:
        wanted = {table.owner, *table.hidden, *table.order.split(", ")}
        assert wanted <= columns[table.name], table.name
        assert table.fate == "erased" or table.reason, table.name
        assert table.exported or table.reason, table.name


def test_types_of_an_export_are_unique_and_money_is_never_erased() -> None:
    types = [table.exported for table in EXPORTED]
    assert len(types) == len(set(types))
    erased = {table.name for table in ERASED}
    assert not erased & {"entries", "holds", "balances", "usage_days", "audit_entries"}
