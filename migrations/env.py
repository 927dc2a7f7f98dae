"""Runs Alembic: each migration in its own transaction.

The statements of a migration are in a `.sql` file with the name of its `.py` file. There are no
downgrades: a later migration corrects a mistake. CONTRIBUTING.md says how to write one.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import structlog
from alembic import context, op
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import await_only

from rota.platform.db import record
from rota.platform.schema_version import check_encoding

log = structlog.get_logger()

URL: str = context.config.attributes["url"]
# A statement that waits for a lock blocks everybody behind it, so it waits only this long. Then
# the migration is tried again.
LOCK_TIMEOUT_S: float = context.config.attributes["lock_timeout_s"]


def run_sql(migration: str) -> None:
    """Sends the whole SQL file. The driver accepts several statements at once."""
    connection = op.get_bind()
    # This also begins the transaction, which the next line does not.
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(LOCK_TIMEOUT_S * 1000)}")
    driver = _driver()
    await_only(driver.execute(_sql(migration)))
    await_only(_record(driver, Path(migration).stem))


def _driver() -> Any:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    return driver


async def _record(driver: Any, migration: str) -> None:
    """Migrations are in the audit trail from the one on that creates it."""
    if await driver.fetchval("SELECT to_regproc('append_audit') IS NOT NULL"):
        await record(driver, "schema.migrated", {"migration": migration})


def run_concurrently(migration: str) -> None:
    """Sends each statement by itself and outside a transaction, as CREATE INDEX CONCURRENTLY
    needs. Every statement ends with a semicolon at the end of a line."""
    # Alembic has read the version in this transaction, and PostgreSQL keeps the snapshot of that
    # query until the next one. A concurrent index would wait for it forever.
    await_only(_driver().execute("SELECT 1"))
    statements = re.split(r";[ \t]*$", _sql(migration), flags=re.MULTILINE)
    await_only(_run_each(statements, Path(migration).stem))


async def _run_each(statements: list[str], migration: str) -> None:
    connection = await connect()
    try:
        for statement in statements:
            if statement.strip():
                await connection.execute(statement)
        async with connection.transaction():
            await _record(connection, migration)
    finally:
        await connection.close()


def _sql(migration: str) -> str:
    return Path(migration).with_suffix(".sql").read_text()


def apply(connection: Connection) -> None:
    context.config.attributes["run_sql"] = run_sql
    context.config.attributes["run_concurrently"] = run_concurrently
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


class PlainConnection(asyncpg.Connection):  # type: ignore[misc]
    """Without SQLAlchemy's codecs for JSON, which it sets outside a transaction: a pooler could
    run their statements on different connections."""

    async def set_type_codec(self, *_: Any, **__: Any) -> None:
        pass


async def connect(**_: Any) -> Any:
    # The driver parses the URL, so every form that the service accepts works here as well.
    # Without prepared statements, because a pooler may not support them.
    return await asyncpg.connect(URL, statement_cache_size=0, connection_class=PlainConnection)


@asynccontextmanager
async def one_at_a_time() -> AsyncIterator[None]:
    """Deployments that start at the same time run one after the other.

    A lock of a transaction, because a pooler cannot keep one of a session. The transaction has no
    snapshot, so concurrent indexes do not wait for it.
    """
    connection = await connect()
    try:
        await check_encoding(connection)
        await connection.execute(
            "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; "
            "SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(727168)"
        )
        yield
    finally:
        await connection.close()


async def newer_version() -> str | None:
    """The version of the schema, if it is newer than the newest migration here."""
    connection = await connect()
    try:
        if await connection.fetchval("SELECT to_regclass('alembic_version') IS NULL"):
            return None
        found: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    finally:
        await connection.close()
    newest = ScriptDirectory.from_config(context.config).get_current_head()
    return found if found and newest and found > newest else None


async def show_version() -> None:
    """Lets the service compare the version of the schema with its own."""
    connection = await connect()
    try:
        if await connection.fetchval("SELECT to_regrole('rota_app') IS NOT NULL"):
            await connection.execute("GRANT SELECT ON alembic_version TO rota_app")
    finally:
        await connection.close()


async def main() -> None:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=pool.NullPool,
        connect_args={
            "async_creator_fn": connect,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        },
    )
    async with one_at_a_time():
        if newer := await newer_version():
            # After a rollback. The older release works with it.
            log.warning("schema_is_newer", version=newer)
        else:
            async with engine.connect() as connection:
                await connection.run_sync(apply)
                await connection.commit()
            await show_version()
    await engine.dispose()


asyncio.run(main())
