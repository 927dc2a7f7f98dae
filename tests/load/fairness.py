"""Measures whether one account's flood of tasks delays another account.

    python -m tests.load.fairness

One account creates thousands of tasks, then another creates a few. The few must finish within a
small part of the flood's time. Then one account has twice as many instructions in the outbox, and
the single instruction of each of a few others must reach Temporal within a second.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.world import PARTS, World
from tests.load.latency_bench import one_task
from tests.runs.runner import until
from tests.runs.scripted import says
from tests.service import Person

SHARE_AIM = 0.15
HANDED_OVER_AIM_MS = 1000.0
FEW = 20
AT_ONCE = 16
SINGLE = 5


async def tasks(stack: Stack, flood: int, few: int = FEW, **changes: Any) -> dict[str, Any]:
    """One account creates very many tasks, then another creates a few."""
    settings = {"run_heartbeat_s": 15.0, **changes}
    async with World.start(stack, "fair_tasks", workers=1, **settings) as world:
        script = await world.scripted.script(says("Done."))
        greedy, modest = await world.newcomer(), await world.newcomer()
        # Warm-up for both accounts.
        for person in (greedy, modest):
            await world.until(person, await world.create(person, "writer", script), "COMPLETED")
        async with world.service.owner() as connection:

            async def done(person: Person) -> int:
                return int(
                    await connection.fetchval(
                        "SELECT completed - 1 FROM account_heads WHERE account_id = $1",
                        person.user_id,
                    )
                )

            async def until_done(person: Person, count: int, since: float) -> float:
                async with asyncio.timeout(1800):
                    while await done(person) < count:
                        await asyncio.sleep(0.1)
                return time.monotonic() - since

            began = time.monotonic()
            await create_many(world, greedy, script, flood)
            late = time.monotonic()
            open_then = flood - await done(greedy)
            await create_many(world, modest, script, few)
            modest_s = await until_done(modest, few, late)
            open_after = flood - await done(greedy)
            each_s = await connection.fetch(
                """
                SELECT extract(epoch FROM finished_at - created_at)::float AS seconds
                FROM tasks WHERE account_id = $1 ORDER BY id DESC LIMIT $2
                """,
                modest.user_id,
                few,
            )
            greedy_s = await until_done(greedy, flood, began)
    return {
        "tasks of the flood": flood,
        "tasks of the other account": few,
        "seconds until the flood is done": round(greedy_s, 1),
        "seconds until the few are done": round(modest_s, 2),
        "seconds of one of the few, median": round(
            statistics.median(row["seconds"] for row in each_s), 2
        ),
        "seconds of one of the few, longest": round(max(row["seconds"] for row in each_s), 2),
        "tasks of the flood open when the few are created": open_then,
        "tasks of the flood open when the few are done": open_after,
        "share": round(modest_s / greedy_s, 3),
    }


async def create_many(world: World, person: Person, script: str, count: int) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def create() -> None:
        async with turn:
            await world.create(person, "writer", script)

    await asyncio.gather(*[create() for _ in range(count)])


async def instructions(stack: Stack, flood: int) -> dict[str, Any]:
    """One account has very many runs to start. How soon is another account's run started?"""
    async with World.start(stack, "fair_outbox", workers=1, run_heartbeat_s=15.0) as world:
        script = await world.scripted.script(says("Done."))
        greedy = await world.newcomer()
        others = [await world.newcomer() for _ in range(SINGLE)]
        [worker] = world.workers
        # Without a worker, nobody takes the instructions out of the outbox.
        await worker.stop()
        await create_many(world, greedy, script, flood)
        await worker.start()

        async def waiting() -> int:
            [row] = await world.query("SELECT count(*) AS n FROM outbox WHERE kind = 'run.start'")
            return int(row["n"])

        left = await until(waiting, lambda count: count < flood)
        taken = await asyncio.gather(
            *[one_task(world, person, "writer", script) for person in others]
        )
        left_after = await waiting()
        await worker.kill()
    handed_over_ms = [each["commit to workflow start"] * 1000 for each in taken]
    return {
        "instructions in the outbox before": left,
        "instructions in the outbox after the last of them completed": left_after,
        "commit to workflow start, ms, median": round(statistics.median(handed_over_ms), 1),
        "commit to workflow start, ms, longest": round(max(handed_over_ms), 1),
    }


def report(found: dict[str, dict[str, Any]]) -> bool:
    shares = bool(found["tasks"]["share"] <= SHARE_AIM)
    handed_over_ms: float = found["instructions"]["commit to workflow start, ms, longest"]
    in_time = handed_over_ms <= HANDED_OVER_AIM_MS
    table = Table(title="A flood of one account, and the work of another")
    for column in ("figure", "value", "aim", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    aims = {
        "share": (f"≤ {SHARE_AIM:g}", shares),
        "commit to workflow start, ms, longest": (f"≤ {HANDED_OVER_AIM_MS:g}", in_time),
    }
    for figures in found.values():
        for name, value in figures.items():
            aim, met = aims.get(name, ("", None))
            table.add_row(name, str(value), aim, {None: "", True: "met", False: "missed"}[met])
        table.add_section()
    Console(width=100).print(table)
    file = Path("bench-results") / "fairness.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=2) + "\n")
    return shares and in_time


async def main(flood: int) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS, durable=False) as stack:
            found = {
                "tasks": await tasks(stack, flood),
                "instructions": await instructions(stack, 2 * flood),
            }
    return 0 if report(found) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=5000)
    raise SystemExit(asyncio.run(main(parser.parse_args().tasks)))
