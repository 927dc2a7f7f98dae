"""How Alembic reaches the database: one connection, one transaction for all that is due.

Each migration is a `.sql` file beside its `.py` file of the same name, sent as
it is. There are no downgrades: a mistake is mended by the next migration.
"""

import asyncio
from pathlib import Path

from alembic import context, op
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import await_only


def run_sql(migration: str) -> None:
    """Sends the SQL file of a migration whole: the driver itself takes many statements."""
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    await_only(driver.execute(Path(migration).with_suffix(".sql").read_text()))


def apply(connection: Connection) -> None:
    context.config.attributes["run_sql"] = run_sql
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        # Two deployments that start at once take turns instead of colliding.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(727168)")
        context.run_migrations()


async def main() -> None:
    url = context.config.attributes["url"].replace("postgresql://", "postgresql+asyncpg://", 1)
    engine = create_async_engine(url, poolclass=pool.NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(apply)
        await connection.commit()
    await engine.dispose()


asyncio.run(main())
