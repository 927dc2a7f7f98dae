"""`make bench` and `make scale`: response times with small tables and 1,000 times larger ones.

One PostgreSQL cluster has a small and a large database, each with its own service process. Both get
the same requests in turn, one at a time, over one open connection. The results are medians.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.seed import Plan, seed
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import list_queries, queries
from rota.tasks.list_queries import Filter
from tests.load import small_rows
from tests.load.bench import COMPONENTS
from tests.load.size_sides import LARGE, SMALL, Fill, Side, opened, ready
from tests.load.statements import BODY, Recorder, external_task
from tests.service import prepared_settings

PAGE = 50
# Targets: the large database takes at most this many times as long as the small one, and the end of
# its list at most this many times as long as its first page.
GROWTH, DEPTH = 1.3, 25
RESULTS = Path("bench-results")

# A round sends four to six requests, and an account can send 6,000 per minute.
ROUNDS = 400
WARM_UP = 20

console = Console(width=110)


# Measurement


async def over_http(side: Side, number: int, end: int, middle: int) -> None:
    """One round of requests, each timed from sending it to reading the whole response."""
    task_id = ids.to_wire("task", side.ids[number % len(side.ids)])
    await _get(side, "list", "/api/tasks")
    await _get(side, "fetch", f"/api/tasks/{task_id}")
    with side.timed("create"):
        response = await side.http.post("/api/tasks", json=BODY)
    assert response.status_code == 201, response.text
    await _get(side, "by status", "/api/tasks?status=COMPLETED")
    if number % 4 == 0:
        await _get(side, "end", f"/api/tasks?offset={end}")
        await _get(side, "middle", f"/api/tasks?offset={middle}")


async def _get(side: Side, what: str, path: str) -> None:
    with side.timed(what):
        response = await side.http.get(path)
    assert response.status_code == 200, response.text


async def statements(side: Side, number: int, end: int, middle: int) -> None:
    """The same round as SQL statements on one connection, including reading the rows."""
    account, task_id = side.account, side.ids[number % len(side.ids)]
    plain = Filter()
    async with side.transaction() as tx:
        with side.timed("list sql"):
            total = await list_queries.total(tx, plain)
            await list_queries.matching_page(tx, plain, PAGE, 0, total)
        with side.timed("fetch sql"):
            await queries.find(tx, task_id)
        wanted = Filter(statuses=("COMPLETED",))
        with side.timed("by status sql"):
            matching = await list_queries.total(tx, wanted)
            await list_queries.matching_page(tx, wanted, PAGE, 0, matching)
        if number % 4 == 0:
            for what, offset in (("end sql", end), ("middle sql", middle)):
                with side.timed(what):
                    await list_queries.matching_page(tx, plain, PAGE, offset, total)
        task = external_task(ids.new_uuid())
        with side.timed("create sql"):
            await queries.insert(tx, task, {"status": "PENDING"}, None, created_by=account)


Round = Callable[[Side, int, int, int], Awaitable[None]]


async def alternate(sides: list[Side], work: Round, rounds: int) -> None:
    """Runs the rounds on both sides. The sides take turns to go first."""
    totals = {side.name: await side.total() for side in sides}
    for number in range(WARM_UP + rounds):
        for side in sides if number % 2 else reversed(sides):
            side.warm = number >= WARM_UP
            total = totals[side.name]
            await work(side, number, total - PAGE, total // 2)


async def check_totals(side: Side) -> list[str]:
    """Compares `total` with a count of the rows, for all tasks and for each status."""
    async with side.service.owner() as owner:
        rows = await owner.fetch(
            "SELECT status, count(*) AS tasks FROM tasks WHERE account_id = $1 GROUP BY status",
            side.account,
        )
    counted = {row["status"]: row["tasks"] for row in rows}
    wrong = []
    if (total := await side.total()) != sum(counted.values()):
        wrong.append(f"{side.name}: total is {total}, but there are {sum(counted.values())} rows")
    for status, rows_of in counted.items():
        if (total := await side.total(status=status)) != rows_of:
            wrong.append(f"{side.name}: total of {status} is {total}, but there are {rows_of} rows")
    return wrong


# Plans


async def plans(side: Side) -> str:
    """The query plans of PostgreSQL, custom and generic."""
    account = side.account
    total = await side.total()
    texts = []
    wanted: list[tuple[str, Callable[[AccountTransaction], Awaitable[Any]]]] = [
        ("list", lambda tx: list_queries.matching_page(tx, Filter(), PAGE, 0, total)),
        ("end", lambda tx: list_queries.matching_page(tx, Filter(), PAGE, total - PAGE, total)),
        ("middle", lambda tx: list_queries.matching_page(tx, Filter(), PAGE, total // 2, total)),
        (
            "by status",
            lambda tx: list_queries.matching_page(
                tx, Filter(statuses=("COMPLETED",)), PAGE, 0, total // 2
            ),
        ),
        ("fetch", lambda tx: queries.find(tx, side.ids[0])),
        (
            "create",
            lambda tx: queries.insert(
                tx,
                external_task(ids.new_uuid()),
                {"status": "PENDING"},
                None,
                created_by=account,
            ),
        ),
    ]
    for name, run in wanted:
        recorder = Recorder()
        await run(recorder.tx(account))
        ((text, arguments),) = recorder.statements
        for mode in ("force_custom_plan", "force_generic_plan"):
            async with side.transaction() as tx:
                await tx.execute(f"SET LOCAL plan_cache_mode = {mode}")
                rows = await _explain(tx, text, arguments)
            texts.append(
                f"## {side.name}, {name}, {mode}\n" + "\n".join(row["QUERY PLAN"] for row in rows)
            )
    return "\n\n".join(texts) + "\n"


async def _explain(
    connection: AccountTransaction, text: str, arguments: tuple[Any, ...]
) -> list[Any]:
    # EXPLAIN with arguments always shows a custom plan. Only EXECUTE shows a generic plan.
    await connection.execute(f"PREPARE measured AS {text}")
    given = ", ".join(_literal(value) for value in arguments)
    # The second result counts. The first one includes loading the system catalogs.
    for _ in range(2):
        await connection.execute("SAVEPOINT before")
        rows = await connection.fetch(
            f"EXPLAIN (ANALYZE, BUFFERS, SETTINGS) EXECUTE measured({given})"
        )
        await connection.execute("ROLLBACK TO before")
    await connection.execute("DEALLOCATE measured")
    return rows


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]::text[]"
    if isinstance(value, bool | int | float):
        return str(value)
    text = (json.dumps(value) if isinstance(value, dict) else str(value)).replace("'", "''")
    return f"'{text}'"


# Report


@dataclass(frozen=True)
class Finding:
    name: str
    base_ms: float
    ms: float
    target: float | None

    @property
    def ratio(self) -> float:
        return self.ms / self.base_ms

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "pass" if self.ratio <= self.target else "FAIL"


def findings(small: Side, large: Side, most: float) -> list[Finding]:
    """The targets apply to HTTP. The times of the statements alone explain the results."""
    names = {"list": "first page", "by status": "first page, one status"}
    found = []
    for how, suffix in (("HTTP", ""), ("statements", " sql")):
        growth, depth = (most, DEPTH) if how == "HTTP" else (None, None)
        for what in ("list", "by status", "fetch", "create"):
            base, ms = small.median_ms(what + suffix), large.median_ms(what + suffix)
            found.append(Finding(f"{names.get(what, what)}, {how}", base, ms, growth))
        first = large.median_ms("list" + suffix)
        for what, target in (("end", depth), ("middle", None)):
            name = f"{what} of the large list compared with its first page, {how}"
            found.append(Finding(name, first, large.median_ms(what + suffix), target))
    return found


def report(found: list[Finding]) -> None:
    table = Table(title="Response times by size of the tables (medians, milliseconds)")
    for column in ("operation", "base", "large", "ratio", "target", ""):
        table.add_column(column, justify="left" if column in ("operation", "") else "right")
    for row in found:
        target = f"≤ {row.target:g}" if row.target is not None else ""
        table.add_row(
            row.name, f"{row.base_ms:.2f}", f"{row.ms:.2f}", f"{row.ratio:.2f}", target, row.verdict
        )
    console.print(table)


async def main(
    plan_of: dict[str, Plan], fill: Fill, data: Path | None, rounds: int, most: float
) -> int:
    with nullcontext(data) if data else tempfile.TemporaryDirectory() as folder:
        async with Stack(Path(folder), components=COMPONENTS) as stack, AsyncExitStack() as exits:
            base = await prepared_settings(stack, "a", "size_base")
            sides = []
            for name, plan in plan_of.items():
                settings = await ready(stack, base, name, plan, fill)
                sides.append(await exits.enter_async_context(opened(stack, name, settings)))
            await alternate(sides, over_http, rounds)
            await alternate(sides, statements, rounds)
            wrong = [problem for each in sides for problem in await check_totals(each)]
            RESULTS.mkdir(exist_ok=True)
            text = "\n".join([await plans(each) for each in sides])
            (RESULTS / "size-plans.txt").write_text(text)
    report(found := findings(sides[0], sides[1], most))
    console.print("\n".join(wrong) if wrong else "Every total equals a count of the rows.")
    console.print(f"The query plans are in {RESULTS}/size-plans.txt.")
    return 1 if wrong or any(row.verdict == "FAIL" for row in found) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=10_000_000)
    parser.add_argument("--largest", type=int, default=None, help="default: a tenth of --tasks")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--data", type=Path, help="keep the cluster here, and reuse it")
    parser.add_argument("--small-rows", action="store_true", help="without texts and events")
    parser.add_argument("--growth", type=float, default=GROWTH, help="the target")
    given = parser.parse_args()
    wanted = {SMALL: Plan.of(given.small), LARGE: Plan.of(given.tasks, largest=given.largest)}
    how = small_rows.fill if given.small_rows else seed
    raise SystemExit(asyncio.run(main(wanted, how, given.data, given.rounds, given.growth)))
