"""Deletes the oldest month of the large database of tests/load/size.py: `make scale`.

    python -m tests.load.size --tasks 30000000 --data /tmp/size
    python -m tests.load.size_retention --data /tmp/size --seconds 240

Retention deletes in short transactions. The duration of a transaction, from its begin to its
commit, is at least as long as it holds any lock, and must stay below 200 ms. The largest account
has its turn first, while requests of the same account are measured. Then the others have theirs,
for as long as the measurement may take.
"""

import argparse
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from rota.composition import Composition
from rota.data.retention import Retention
from rota.dev.seed import seed
from rota.dev.stack import Stack
from rota.platform.db import AccountTransaction, Database
from rota.platform.telemetry import configure_logging
from rota.policies.retention import RetentionRules
from tests.load.bench import COMPONENTS
from tests.load.fleet import write_json
from tests.load.retention_bench import percentile
from tests.load.size_sides import LARGE, Side, opened, ready
from tests.load.statements import BODY
from tests.service import prepared_settings

# The generated tasks are up to a year old, so this deletes their first month.
KEPT_DAYS = 335
MAX_LOCK_MS = 200
RESULTS = Path("bench-results/size-retention.json")
TASKS = "SELECT sum(completed + failed + cancelled)::bigint FROM account_heads"


@dataclass
class Timed:
    """A database that notes how long each transaction of retention took."""

    db: Database
    seconds: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def removal(self, account_id: UUID) -> AsyncIterator[AccountTransaction]:
        started = time.perf_counter()
        async with self.db.removal(account_id) as tx:
            yield tx
        self.seconds.append(time.perf_counter() - started)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)


async def requests(large: Side, times: list[float]) -> None:
    """Sends requests of the largest account, one at a time, until it is cancelled."""
    while True:
        for method, path, body in (
            ("GET", "/api/tasks?limit=20", None),
            ("POST", "/api/tasks", BODY),
        ):
            started = time.perf_counter()
            response = await large.http.request(method, path, json=body)
            assert response.status_code < 300, response.text
            times.append(time.perf_counter() - started)
            # Below the account's rate limit.
            await asyncio.sleep(0.02)


async def during(large: Side, work: Any) -> list[float]:
    times: list[float] = []
    asking = asyncio.create_task(requests(large, times))
    await work
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    return times


async def measure(large: Side, retention: Retention, timed: Timed, seconds: float) -> bool:
    async with large.service.owner() as owner:
        rows = await owner.fetch(
            "SELECT account_id FROM account_heads ORDER BY last_sequence DESC LIMIT 20000"
        )
        before = await owner.fetchval(TASKS)
    without = await during(large, asyncio.sleep(10))
    began = time.perf_counter()
    with_it = await during(large, retention.apply(rows[0]["account_id"]))
    largest_s = time.perf_counter() - began
    others = 0
    for row in rows[1:]:
        if time.perf_counter() - began > seconds:
            break
        await retention.apply(row["account_id"])
        others += 1
    took = time.perf_counter() - began
    async with large.service.owner() as owner:
        after = await owner.fetchval(TASKS)
    longest = max(timed.seconds) * 1000
    over = sum(each * 1000 > MAX_LOCK_MS for each in timed.seconds)
    met = over == 0
    figures = {
        "transactions": len(timed.seconds),
        "medianMs": percentile(timed.seconds, 0.5),
        "p99Ms": percentile(timed.seconds, 0.99),
        "longestMs": longest,
        "deletedTasks": int(before - after),
        "tasksPerSecond": int((before - after) / took),
        "largestAccountS": largest_s,
        "otherAccounts": others,
        "requestP99WithoutMs": percentile(without, 0.99),
        "requestP99WithMs": percentile(with_it, 0.99),
    }
    for name, value in figures.items():
        print(f"{name:>22}: {value:,.1f}" if isinstance(value, float) else f"{name:>22}: {value:,}")
    print(
        f"No transaction over {MAX_LOCK_MS} ms: {'met' if met else f'MISSED, {over} were longer'}"
    )
    write_json(RESULTS, figures)
    return met


async def main(data: Path, seconds: float, days: int) -> int:
    configure_logging("WARNING", "console")
    async with AsyncExitStack() as exits:
        stack = await exits.enter_async_context(Stack(data, components=COMPONENTS))
        base = await prepared_settings(stack, "a", "size_base")
        # It exists already, so no plan is needed.
        settings = await ready(stack, base, LARGE, cast("Any", None), seed)
        large = await exits.enter_async_context(opened(stack, LARGE, settings))
        parts = await exits.enter_async_context(Composition(settings, pool_size=2))
        timed = Timed(parts.db)
        rules = RetentionRules({"tasks": days, "events": days})
        retention = Retention(cast("Database", timed), parts.signer, "http://bench", rules=rules)
        met = await measure(large, retention, timed, seconds)
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the cluster of tests.load.size")
    parser.add_argument("--seconds", type=float, default=240, help="for accounts after the first")
    parser.add_argument("--days", type=int, default=KEPT_DAYS, help="less for each repetition")
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.data, options.seconds, options.days)))
