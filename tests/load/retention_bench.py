"""What another account notices while retention deletes many old tasks.

    python -m tests.load.retention_bench --tasks 1000000

It fills one account with old tasks by SQL, and measures the requests of another account without and
with retention, in turns. Retention has a process of its own, as it has in a deployment. Prints the
99th percentiles, their ratio, and how fast retention is.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from rota.composition import Composition
from rota.data.retention import Retention
from rota.dev.stack import Stack
from rota.platform.ids import first_from
from rota.platform.settings import Settings
from rota.platform.telemetry import configure_logging
from rota.policies.retention import RetentionRules
from tests.load.bench import COMPONENTS, people_of
from tests.load.raw_http import RawClient, request
from tests.load.statements import BODY
from tests.service import Service, environment
from tests.tasks.world import newcomer

AGE = timedelta(days=400)
BATCH = 20_000
# A turn of measuring, in seconds, and what retention may cost.
TURN_S = 5.0
TARGET = 1.3

FILL = """
    INSERT INTO tasks (account_id, id, status, hosted, name, input, output, created_at, updated_at,
        finished_at, created_by, agent)
    SELECT $1, ($2::text || lpad(to_hex(n), 20, '0'))::uuid, 'COMPLETED', false, 'Old task ' || n,
        repeat('words of an input ', 20), repeat('words of an output ', 50), $5, $5, $5, $1, 'a'
    FROM generate_series($3::int, $4::int) AS n
"""
FILL_STEPS = """
    INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, result)
    SELECT account_id, id, 1, step, 0, 'model', 'finished', 'model',
        jsonb_build_object('text', repeat('words of an answer ', 50))
    FROM tasks, generate_series(1, 2) AS step
    WHERE account_id = $1 AND id > $2 AND id <= $3
"""


async def fill(connection: Any, account_id: UUID, tasks: int) -> None:
    old = datetime.now(UTC) - AGE
    prefix = first_from(old).hex[:12]
    for start in range(0, tasks, BATCH):
        last = min(start + BATCH, tasks) - 1
        await connection.execute(FILL, account_id, prefix, start, last, old)
        await connection.execute(
            FILL_STEPS,
            account_id,
            UUID(f"{prefix}{start - 1 if start else 0:020x}"),
            UUID(f"{prefix}{last:020x}"),
        )
    await connection.execute(
        "UPDATE account_heads SET completed = $2 WHERE account_id = $1", account_id, tasks
    )
    await connection.execute(
        "INSERT INTO task_counts VALUES ($1, 'agent', 'a', 'COMPLETED', $2)", account_id, tasks
    )
    await connection.execute("ANALYZE tasks; ANALYZE steps")


async def measure(client: RawClient, sent: list[bytes], seconds: float) -> list[float]:
    """The times of requests, one after the other."""
    times = []
    ends_at = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < ends_at:
        started = time.perf_counter()
        await client.send(sent[number % len(sent)])
        times.append(time.perf_counter() - started)
        number += 1
    return times


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)] * 1000


async def apply(account_id: UUID) -> None:
    async with Composition(Settings(), pool_size=2) as parts:
        rules = RetentionRules({"tasks": 365})
        await Retention(parts.db, parts.signer, "http://bench", rules=rules).apply(account_id)


async def main(tasks: int) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with (
            Stack(Path(data), components=COMPONENTS) as stack,
            Service.start(stack, variant="a", name="retention_bench") as service,
            service.process(fresh=True) as other,
        ):
            full, people = await newcomer(service), await people_of(service)
            async with service.owner() as connection:
                await fill(connection, full.user_id, tasks)
                await connection.execute("UPDATE accounts SET tier = 'enterprise'")
            client = RawClient(other.settings.port)
            sent = [
                each
                for person in people
                for each in (
                    request("GET", "/api/tasks?limit=10", person.token),
                    request("POST", "/api/tasks", person.token, BODY),
                )
            ]
            await measure(client, sent, 2)
            without = await measure(client, sent, TURN_S)
            started = time.perf_counter()
            deleting = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.load.retention_bench",
                "--apply",
                str(full.user_id),
                env=os.environ | environment(service.settings),
            )
            during: list[float] = []
            while deleting.returncode is None:
                during += await measure(client, sent, min(1.0, TURN_S))
            took = time.perf_counter() - started
            without += await measure(client, sent, TURN_S)
            async with service.owner() as connection:
                left = await connection.fetchval(
                    "SELECT count(*) FROM tasks WHERE account_id = $1", full.user_id
                )
    for name, times in (("without", without), ("with", during)):
        print(
            f"{name:>8}: {len(times)} requests, p50 {percentile(times, 0.5):.1f} ms, "
            f"p99 {percentile(times, 0.99):.1f} ms"
        )
    ratio = percentile(during, 0.99) / percentile(without, 0.99)
    print(f"ratio of p99: {ratio:.2f} (at most {TARGET})")
    print(f"{tasks} tasks deleted in {took:.1f} s, {tasks / took:.0f} tasks/s")
    print(f"tasks left: {left}")
    return 0 if ratio <= TARGET and left == 0 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--apply", type=UUID, help="only retention, for this account")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        if options.apply:
            asyncio.run(apply(options.apply))
        else:
            raise SystemExit(asyncio.run(main(options.tasks)))
