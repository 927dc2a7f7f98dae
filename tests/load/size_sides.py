"""The databases that size.py compares: filled, with a service and a client of their own."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import httpx
from pydantic import SecretStr

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.auth import rotation
from rota.dev.seed import Plan, Seeded, seed
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.crypto import Vault
from rota.platform.db import AccountTransaction, use_json
from rota.platform.migrate import migrate
from rota.platform.roles import APPLICATION_ROLE
from rota.platform.settings import Settings
from tests.service import Person, Service, free_port

SMALL, LARGE = "size_small", "size_large"
# How many tasks can be fetched before one is fetched again.
SAMPLE = 420


@dataclass
class Side:
    """One of the databases, its service and its largest account."""

    name: str
    service: Service
    account: UUID
    http: httpx.AsyncClient
    # With the role of the service, so row security applies.
    connection: Any
    ids: list[UUID]
    # Seconds by operation, without the warm-up.
    times: dict[str, list[float]] = field(default_factory=dict)
    warm: bool = False

    async def total(self, **filters: str) -> int:
        response = await self.http.get("/api/tasks", params={"limit": 1, **filters})
        total: int = response.raise_for_status().json()["total"]
        return total

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        if self.warm:
            self.times.setdefault(operation, []).append(time.perf_counter() - started)

    def median_ms(self, operation: str) -> float:
        return statistics.median(self.times[operation]) * 1000

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AccountTransaction]:
        """Always rolled back, so that one measurement does not affect the next."""
        await self.connection.execute(
            f"BEGIN; SET LOCAL rota.account_id = '{self.account}'; "
            f"SET LOCAL rota.user_id = '{self.account}'"
        )
        try:
            yield AccountTransaction(self.connection, self.account, self.account)
        finally:
            await self.connection.execute("ROLLBACK")


Fill = Callable[[str, Plan], Awaitable[Seeded]]


async def ready(stack: Stack, base: Settings, name: str, plan: Plan, fill: Fill = seed) -> Settings:
    """Creates a seeded database, or uses the existing one with --data."""
    server = stack.endpoints.database_url.rpartition("/")[0]
    url = f"{server}/{name}"
    settings = base.model_copy(update={"database_url": SecretStr(url)})
    admin = await asyncpg.connect(stack.endpoints.database_url)
    try:
        known = await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name)
        if not known:
            await admin.execute(f"CREATE DATABASE {name}")
    finally:
        await admin.close()
    await asyncio.to_thread(migrate, url)
    if not known:
        await sync(url, catalog_folder())
        seeded = await fill(url, plan)
        rate = plan.tasks / seeded.seconds
        print(f"{name}: {plan.tasks:,} tasks in {seeded.seconds:.0f} s ({rate:,.0f}/s)")
    await rotation.ensure_key(url, Vault(settings.secret_key_bytes))
    return settings


@asynccontextmanager
async def opened(stack: Stack, name: str, settings: Settings) -> AsyncIterator[Side]:
    async with AsyncExitStack() as exits:
        idle = await exits.enter_async_context(httpx.AsyncClient())
        service = await exits.enter_async_context(
            Service(stack, settings, idle).process(fresh=True)
        )
        person = await service.sign_in(f"size-{free_port()}")
        async with service.owner() as owner:
            await owner.execute("CHECKPOINT")
            account, sample = await _largest(owner, person)
        http = httpx.AsyncClient(
            base_url=service.http.base_url,
            headers=person.auth | {"X-Service-Account": ids.to_wire("acct", account)},
            limits=httpx.Limits(max_connections=1),
            timeout=60,
        )
        await exits.enter_async_context(http)
        connection = await asyncpg.connect(
            settings.database_url.get_secret_value(), server_settings={"role": APPLICATION_ROLE}
        )
        exits.push_async_callback(connection.close)
        await use_json(connection)
        yield Side(name, service, account, http, connection, sample)


async def _largest(owner: Any, person: Person) -> tuple[UUID, list[UUID]]:
    """Adds the user to the largest account. Returns the account and some of its tasks."""
    account = await owner.fetchval(
        "SELECT account_id FROM account_heads ORDER BY last_sequence DESC LIMIT 1"
    )
    await owner.execute(
        "INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, 'owner')",
        account,
        person.user_id,
    )
    rows = await owner.fetch(
        "SELECT id FROM tasks WHERE account_id = $1 ORDER BY hashtext(id::text) LIMIT $2",
        account,
        SAMPLE,
    )
    return account, [row["id"] for row in rows]
