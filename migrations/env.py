"""Runs Alembic: one connection and one transaction for all pending migrations.

The statements of a migration are in a `.sql` file with the name of its `.py` file. There are no
downgrades: a later migration corrects a mistake.
"""

import asyncio
from pathlib import Path

from alembic import context, op
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import await_only


def run_sql(migration: str) -> None:
    """Sends the whole SQL file. The driver accepts several statements at once."""
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    await_only(driver.execute(Path(migration).with_suffix(".sql").read_text()))


def apply(connection: Connection) -> None:
    context.config.attributes["run_sql"] = run_sql
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        # Deployments that start at the same time run one after the other.
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
