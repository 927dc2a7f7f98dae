"""A service whose retention and erasures tests drive, and everything that it stores."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.audit import verify as audit_verify
from rota.composition import Composition
from rota.credits import charges
from rota.credits import verify as ledger_verify
from rota.credits.model import Charge, RunId
from rota.data.erasing import Erasing
from rota.data.retention import Retention
from rota.data.sweep import DataSweep
from rota.dev.stack import Stack
from rota.events import journal
from rota.events.relay import Relay
from rota.payments.port import Processor
from rota.platform import clock
from rota.runs.dispatcher import RunDispatcher
from tests.service import Person, Service
from tests.tasks.world import AGENT, uuid_of

DAYS = 10


@dataclass
class World:
    service: Service
    parts: Composition

    @classmethod
    @asynccontextmanager
    async def start(
        cls, stack: Stack, variant: str, name: str, **changes: Any
    ) -> AsyncIterator["World"]:
        async with Service.start(stack, variant=variant, name=name, **changes) as service:
            await sync(service.database_url, catalog_folder())
            async with Composition(service.settings, pool_size=6) as parts:
                yield cls(service, parts)

    def retention(self, now: datetime | None = None) -> Retention:
        """As the worker's, at another time."""
        return Retention(
            self.parts.db,
            self.parts.signer,
            self.service.settings.public_url,
            rules=self.parts.retention_rules,
            now=lambda: now or clock.now(),
        )

    def sweep(self, now: datetime | None = None, confirm_s: float = 0) -> DataSweep:
        return DataSweep(
            self.parts.db,
            self.retention(now),
            self.erasing(confirm_s),
            self.parts.wakes,
            every_s=300,
        )

    def erasing(self, confirm_s: float = 0, processor: Processor | None = None) -> Erasing:
        parts = self.parts
        return Erasing(
            parts.db,
            parts.temporal,
            parts.redis,
            processor or parts.processor,
            leave_companies=parts.erasures.leave_companies,
            confirm_s=confirm_s,
        )

    async def relay_runs(self) -> None:
        """Starts runs in Temporal. No worker carries them."""
        dispatcher = RunDispatcher(self.parts.temporal, self.parts.db, heartbeat_s=15)
        relay = Relay(self.parts.db, dispatcher.handlers)
        while await relay.step():
            pass

    async def ledger_problems(self, account_id: UUID) -> list[str]:
        async with self.parts.db.snapshot(account_id) as tx:
            return [
                f"{each.description}: {each.location}" for each in await ledger_verify.problems(tx)
            ]

    async def audit_problems(self, account_id: UUID) -> list[str]:
        keys = self.parts.signer.public_keys()
        async with self.parts.db.snapshot(account_id) as tx:
            found = await audit_verify.problems(tx, None, list(keys))
        return [f"{each.sequence}: {each.description}" for each in found]

    async def run_task(self, person: Person, account_id: UUID, **body: Any) -> dict[str, Any]:
        """A hosted task with a step that was paid, which has ended."""
        headers = body.pop("headers", {})
        response = await person.post(
            "/api/tasks", {"name": "A task", "agent": AGENT, **body}, headers=headers
        )
        assert response.status_code == 201, response.text
        task: dict[str, Any] = response.json()["task"]
        await self.pay_step(account_id, uuid_of(task))
        ended = await person.request(
            "PATCH", f"/api/tasks/{task['id']}", json={"status": "CANCELLED"}, headers=headers
        )
        assert ended.status_code == 200, ended.text
        return task

    async def pay_step(self, account_id: UUID, task_id: UUID, text: str = "{}") -> None:
        async with self.service.owner() as connection:
            await connection.execute(
                """
                INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name,
                    cost_micros, result)
                VALUES ($1, $2, 1, 1, 0, 'model', 'finished', 'model', 10000, $3)
                """,
                account_id,
                task_id,
                text,
            )
        async with self.parts.db.write(account_id) as tx:
            await journal.lock_account(tx)
            charge = Charge(RunId(task_id, 1), 1, AGENT, "model", "1", 10_000, 5, 5)
            await charges.charge(tx, charge)

    async def rows(self, table: str, account_id: UUID, column: str = "account_id") -> int:
        async with self.service.owner() as connection:
            found: int = await connection.fetchval(
                f"SELECT count(*) FROM {table} WHERE {column} = $1", account_id
            )
        return found

    async def texts_with(self, marker: str) -> list[str]:
        """Every table that has the marker in any column of any row."""
        found = []
        async with self.service.owner() as connection:
            tables = await connection.fetch(
                """
                SELECT relname FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
                  AND NOT relispartition ORDER BY relname
                """
            )
            for (name,) in tables:
                if await connection.fetchval(
                    f"SELECT EXISTS (SELECT FROM {name} t WHERE t::text ILIKE $1)",
                    f"%{marker}%",
                ):
                    found.append(name)
        return found

    async def redis_with(self, marker: str) -> list[str]:
        """Every key of Redis that has the marker in its name or its value."""
        found = []
        redis = self.parts.redis
        async for key in redis.scan_iter():
            kind = await redis.type(key)
            value: bytes | str | None = await redis.dump(key)
            if kind == b"string":
                value = await redis.get(key)
            value = value.encode() if isinstance(value, str) else value or b""
            if marker.encode() in key + value:
                found.append(key.decode())
        return found
