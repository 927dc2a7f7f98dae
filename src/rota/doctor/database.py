"""PostgreSQL: the server, the rights of the login, the schema, the key and the catalog."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import asyncpg

from rota.agents import queries as agent_queries
from rota.agents.model import Agent
from rota.composition import Composition
from rota.doctor.finding import Finding, failed, findings, ok, warning
from rota.platform import clock
from rota.platform.database_errors import EXPLAINED, explain
from rota.platform.schema_version import needed
from rota.platform.settings import Settings

OLDEST_SERVER = 15
# Tokens of identity providers are refused if the clocks differ by more than this.
MAX_CLOCK_DIFFERENCE_S = 5.0

_SERVER = """
SELECT current_setting('server_version_num')::int / 10000 AS version,
       current_setting('max_connections')::int AS connections,
       clock_timestamp() AS now,
       current_setting('archive_mode') AS archive_mode
"""


async def check_server(settings: Settings) -> AsyncIterator[Finding]:
    try:
        server = await _server(settings.database_url.get_secret_value())
    except EXPLAINED as error:
        yield failed("postgres", explain(error))
        return
    if server["version"] < OLDEST_SERVER:
        yield failed(
            "postgres", f"PostgreSQL {server['version']} is too old. Use {OLDEST_SERVER} or newer."
        )
        return
    if settings.database_pool_size >= server["connections"]:
        yield warning(
            "postgres",
            f"One process opens up to {settings.database_pool_size} connections, and PostgreSQL "
            f"allows {server['connections']} in total. Lower ROTA_DATABASE_POOL_SIZE, raise "
            "max_connections, or use PgBouncer.",
        )
    difference_s = abs((clock.now() - server["now"]).total_seconds())
    if difference_s > MAX_CLOCK_DIFFERENCE_S:
        yield warning(
            "postgres",
            f"The clocks of this machine and of PostgreSQL differ by {difference_s:.0f} s. "
            "Synchronize them, for example with chrony.",
        )
    if settings.env == "production" and server["archive_mode"] == "off":
        yield warning(
            "postgres",
            "archive_mode is off, so the database cannot be restored to a point in time. "
            "Set it up as described in docs/backup.md, or ignore this if your provider "
            "backs up the database.",
        )
    yield ok("postgres", f"PostgreSQL {server['version']}")
    if settings.migration_database_url:
        try:
            await _server(settings.migration_database_url.get_secret_value())
        except EXPLAINED as error:
            # The service runs without it.
            yield warning("migration login", explain(error, "ROTA_MIGRATION_DATABASE_URL"))
        else:
            yield ok("migration login", "the owner's login works")


async def _server(url: str) -> "asyncpg.Record":
    connection = await asyncpg.connect(url, timeout=5, statement_cache_size=0)
    try:
        return await connection.fetchrow(_SERVER)
    finally:
        await connection.close()


@dataclass(slots=True)
class Contents:
    findings: list[Finding] = field(default_factory=list)
    # None if the catalog cannot be read.
    agents: Sequence[Agent] | None = None


async def check_contents(parts: Composition) -> Contents:
    """The checks that need the tables. Each needs the one before."""
    found = Contents()
    async with AsyncExitStack() as opened:
        for name, check in (
            ("login", lambda: _check_login(parts, opened)),
            ("schema", lambda: _check_schema(parts)),
            ("secret key", lambda: _check_key(parts)),
            ("agents", lambda: _check_agents(parts, found)),
        ):
            found.findings += await findings(name, check)
            if any(finding.status == "failed" for finding in found.findings):
                break
    return found


async def _check_login(parts: Composition, opened: AsyncExitStack) -> AsyncIterator[Finding]:
    await opened.enter_async_context(parts)
    await parts.db.check_relay()
    yield ok("login", "has the roles of serve and worker, and no other rights in production")


async def _check_schema(parts: Composition) -> AsyncIterator[Finding]:
    await parts.db.check_version()
    yield ok("schema", f"has version {needed()} or newer")


async def _check_key(parts: Composition) -> AsyncIterator[Finding]:
    await parts.check_secret_key()
    yield ok("secret key", "decrypts the signing keys")


async def _check_agents(parts: Composition, found: Contents) -> AsyncIterator[Finding]:
    async with parts.db.directory() as connection:
        found.agents = await agent_queries.by_department(connection)
    if found.agents:
        yield ok("agents", f"{len(found.agents)} agents in the catalog")
    else:
        yield failed("agents", "The catalog has no agents. Run: rota admin agents sync")
