"""A deployment of several `serve` and `worker` processes whose parts are metered."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rota.dev.processes import Component
from rota.dev.stack import Stack
from tests.chaos.world import Api, Worker, World, _variables
from tests.load.meter import Use, difference, measure
from tests.load.raw_http import RawClient, request
from tests.service import Person, free_port

PARTS = ("serve", "worker", "postgres", "redis", "temporal")
# The benchmark itself: it sends the requests, and its model and tools answer.
OTHERS = "benchmark"
STACK_PARTS = ("postgres", "redis", "temporal", "idp")
MOST_WORKERS = 25
SETTLE_S, IDLE_S = 3.0, 5.0
SIZE = """
    SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
GROWING = """
    SELECT c.oid::regclass::text AS name FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
      AND (c.relispartition OR c.relname IN ('task_words', 'reviews', 'task_counts', 'outbox'))
"""


@dataclass(frozen=True)
class Metered:
    """What a number of operations took."""

    count: int
    seconds: float
    use: dict[str, Use]
    wal_bytes: int
    transaction_ids: int
    redis_commands: int
    temporal_bytes: int
    # Of compacted tables, so only where that was measured.
    stored_bytes: float = 0

    @property
    def per_s(self) -> float:
        return self.count / self.seconds

    def cpu_ms(self, *parts: str) -> float:
        return sum(self.use[part].cpu_ms for part in parts or PARTS) / self.count

    def summary(self) -> dict[str, Any]:
        """What one operation takes."""
        return {
            "count": self.count,
            "perSecond": round(self.per_s, 1),
            "cpuMs": {part: round(self.cpu_ms(part), 3) for part in (*PARTS, OTHERS)},
            "readBytes": {
                part: round(self.use[part].read_bytes / self.count)
                for part in PARTS
                if self.use[part].read_bytes
            },
            "writtenBytes": {
                part: round(self.use[part].written_bytes / self.count)
                for part in PARTS
                if self.use[part].written_bytes
            },
            "walBytes": round(self.wal_bytes / self.count),
            "storedBytes": round(self.stored_bytes / self.count),
            "transactionIds": round(self.transaction_ids / self.count, 2),
            "redisCommands": round(self.redis_commands / self.count, 2),
            "temporalBytes": round(self.temporal_bytes / self.count),
        }


class Fleet(World):
    WORKERS = tuple(
        type(f"Worker{number}", (Worker,), {"name": f"worker-{number}", "ready_within_s": 300})
        for number in range(1, MOST_WORKERS + 1)
    )

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.serves: list[Api] = [self.api]
        self._clients: list[RawClient] = []

    @classmethod
    @asynccontextmanager
    async def of(
        cls, stack: Stack, name: str, *, serves: int = 1, workers: int = 1, **changes: Any
    ) -> AsyncIterator["Fleet"]:
        changes = {"run_heartbeat_s": 15.0, "processes": serves, **changes}
        async with cls.start(stack, name, workers=workers, **changes) as fleet:
            assert isinstance(fleet, Fleet)
            try:
                await fleet._serve(serves - 1)
                fleet._clients = [RawClient(api.port) for api in fleet.serves]
                yield fleet
            finally:
                await asyncio.gather(*[api.stop() for api in fleet.serves[1:]])

    async def _serve(self, more: int) -> None:
        command = [sys.executable, "-m", "rota.cli", "serve"]
        for number in range(2, more + 2):
            port = free_port()
            kind = type(f"Api{number}", (Api,), {"name": f"api-{number}", "ready_within_s": 300})
            settings = self.settings.model_copy(update={"port": port})
            self.serves.append(kind(self.stack.site, port, command, _variables(settings)))
        await asyncio.gather(*[api.start() for api in self.serves[1:]])

    async def people(self, count: int) -> list[Person]:
        """As many accounts, each with its own client."""
        return [await self.newcomer() for _ in range(count)]

    # Load

    async def send(
        self, requests: Sequence[bytes], count: int, at_once: int, status: int, per_s: float = 0
    ) -> None:
        """Sends requests, so many at the same time, to all `serve` processes in turn.

        Each process gets all of them. With `per_s`, each request waits for its moment, so that the
        servers have idle time.
        """
        numbers = iter(range(count))
        began, clients = time.monotonic(), self._clients

        async def sender() -> None:
            for number in numbers:
                if per_s:
                    await asyncio.sleep(began + number / per_s - time.monotonic())
                turn, client = divmod(number, len(clients))
                response = await clients[client].send(requests[turn % len(requests)])
                assert response.status == status, response.label

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(sender())

    async def tasks(
        self, people: Sequence[Person], script: str, count: int, at_once: int, agent: str = "writer"
    ) -> None:
        """Creates hosted tasks, and returns when all have completed."""
        body = {"name": "A task", "agent": agent, "input": f"Please. {script}"}
        accounts = [person.user_id for person in people]
        target = count + await self.completed(accounts)
        sent = [request("POST", "/api/tasks", person.token, body) for person in people]
        await self.send(sent, count, at_once, 201)
        await self.until_completed(accounts, target)

    async def completed(self, accounts: Sequence[UUID]) -> int:
        [row] = await self.query(
            "SELECT sum(completed)::int AS n FROM account_heads WHERE account_id = ANY($1)",
            list(accounts),
        )
        return int(row["n"])

    async def until_completed(self, accounts: Sequence[UUID], target: int) -> None:
        # One connection and one small query, so that polling costs little.
        async with asyncio.timeout(400), self.service.owner() as connection:
            while target > await connection.fetchval(
                "SELECT sum(completed) FROM account_heads WHERE account_id = ANY($1)", accounts
            ):
                await asyncio.sleep(0.1)

    # Meters

    def roots(self) -> dict[str, list[int]]:
        stack = self.stack
        return {
            "serve": [pid_of(api) for api in self.serves],
            "worker": [pid_of(worker) for worker in self.workers],
            **{part: [pid_of(stack.component(part))] for part in ("postgres", "redis")},
            "temporal": self.temporal_roots(),
        }

    def temporal_roots(self) -> list[int]:
        return [pid_of(self.stack.temporal)]

    def use(self) -> dict[str, Use]:
        found = measure(self.roots() | {OTHERS: [os.getpid()]})
        # All parts are descendants of this process.
        rest = found.pop(OTHERS)
        for part in found.values():
            rest -= part
        return found | {OTHERS: rest}

    @asynccontextmanager
    async def metered(self, count: int) -> AsyncIterator[list[Metered]]:
        """Measures what happens inside. The result is in the list afterwards."""
        result: list[Metered] = []
        before, began = await self._figures(), time.monotonic()
        used = self.use()
        yield result
        seconds = time.monotonic() - began
        spent = difference(used, self.use())
        after = await self._figures()
        figures = {name: after[name] - before[name] for name in before}
        result.append(Metered(count=count, seconds=seconds, use=spent, **figures))

    async def idle(self) -> Metered:
        """What the parts use in some seconds without work, after the work before is over."""
        await asyncio.sleep(SETTLE_S)
        async with self.metered(1) as result:
            await asyncio.sleep(IDLE_S)
        return result[0]

    async def compact(self) -> int:
        """Rewrites the tables that grow, and returns the size of all with their indexes.

        Without it, a few hundred rows say little: PostgreSQL adds several pages at once to each of
        many partitions and indexes.
        """
        async with self.service.owner() as connection:
            for row in await connection.fetch(GROWING):
                await connection.execute(f"VACUUM (FULL) {row['name']}")
            size: int = await connection.fetchval(SIZE)
        return size

    async def _figures(self) -> dict[str, int]:
        """What the servers have written so far."""
        [row] = await self.query(
            """
            SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS wal,
                pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS ids
            """
        )
        path = self.stack.site.directory.path
        files = [path / "temporal.db", path / "temporal.db-wal"]
        return {
            "wal_bytes": row["wal"],
            "transaction_ids": row["ids"],
            "redis_commands": await self._redis_commands(),
            "temporal_bytes": sum(file.stat().st_size for file in files if file.exists()),
        }

    async def _redis_commands(self) -> int:
        import redis.asyncio

        async with redis.asyncio.from_url(self.stack.redis.url) as client:
            return int((await client.info("stats"))["total_commands_processed"])

    async def updates(self) -> dict[str, dict[str, int]]:
        """Updates of each table, and how many of them changed no index."""
        rows = await self.query(
            """
            SELECT regexp_replace(relname, '_[0-9]+$', '') AS name,
                sum(n_tup_ins)::int AS inserted, sum(n_tup_upd)::int AS updated,
                sum(n_tup_hot_upd)::int AS hot, sum(n_tup_del)::int AS deleted
            FROM pg_stat_user_tables GROUP BY 1 HAVING sum(n_tup_ins + n_tup_upd) > 0 ORDER BY 1
            """
        )
        return {row["name"]: {k: row[k] for k in dict(row) if k != "name"} for row in rows}


def pid_of(component: Component) -> int:
    assert component._child is not None
    return component._child._process.pid


def write_json(path: Any, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
