"""Measures how long one task takes when nothing else runs, and what an idle worker costs.

    python -m tests.load.latency_bench

A task asks an instant model once. A delegating task also waits for a subtask. The times are from
the database and from Temporal, so the client's polling is not part of them.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.world import PARTS, World
from tests.runs.scripted import calls, says
from tests.service import Person
from tests.tasks.world import uuid_of

# In milliseconds, for the medians.
AIMS = {
    ("one call", "commit to workflow start"): 25.0,
    ("one call", "total"): 90.0,
    ("delegating", "total"): 300.0,
}
IDLE_AIM = 2.0
IDLE_S = 30

Samples = dict[str, list[float]]


async def one_task(world: World, person: Person, agent: str, script: str) -> dict[str, float]:
    """The parts of one task's time, in seconds."""
    async with world.service.owner() as connection:
        began = time.time()
        body = {"name": "A task", "agent": agent, "input": f"Please. {script}"}
        answer = await person.post("/api/tasks", body)
        answered = time.time()
        assert answer.status_code == 201, answer.text
        task: dict[str, Any] = answer.json()["task"]
        while True:
            await asyncio.sleep(0.05)
            row = await connection.fetchrow(
                """
                SELECT t.status, e.created_at, t.started_at, t.finished_at
                FROM tasks t JOIN events e ON e.account_id = t.account_id
                    AND e.task_id = t.id AND e.type = 'task.created'
                WHERE t.id = $1
                """,
                uuid_of(task),
            )
            if row["status"] == "COMPLETED":
                break
            assert row["status"] in ("PENDING", "RUNNING"), row["status"]
    client = await world.temporal()
    run = await client.get_workflow_handle(f"run/{task['id']}/1").describe()
    created, ended = row["created_at"].timestamp(), row["finished_at"].timestamp()
    started = run.start_time.timestamp()
    return {
        "request": answered - began,
        "commit to workflow start": started - created,
        "workflow start to RUNNING": row["started_at"].timestamp() - started,
        "RUNNING to COMPLETED": ended - row["started_at"].timestamp(),
        "total": ended - began,
    }


async def idle_transactions(world: World) -> float:
    """Committed transactions per second while nobody uses the service."""
    count = "SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()"
    await world.api.stop()
    # PostgreSQL counts a transaction up to 10 s later.
    await asyncio.sleep(12)
    async with world.service.owner() as connection:
        before, began = await connection.fetchval(count), time.monotonic()
        await asyncio.sleep(IDLE_S)
        after, ended = await connection.fetchval(count), time.monotonic()
    return float(after - before) / (ended - began)


async def measure(stack: Stack, count: int) -> tuple[dict[str, Samples], float]:
    figures: dict[str, Samples] = {"one call": defaultdict(list), "delegating": defaultdict(list)}
    async with World.start(stack, "latency_bench", workers=1, run_heartbeat_s=15.0) as world:
        person = await world.newcomer()
        plain = await world.scripted.script(says("Done."))
        part = {"agent": "writer", "name": "A part", "input": f"Help, please. {plain}"}
        lead = await world.scripted.script(calls(("delegate", part)), says("Done."))
        for number in range(count + 3):
            for name, agent, script in (
                ("one call", "writer", plain),
                ("delegating", "director", lead),
            ):
                taken = await one_task(world, person, agent, script)
                for part_name, seconds in taken.items():
                    if number >= 3:  # The first ones warm up connections and plans.
                        figures[name][part_name].append(seconds * 1000)
        idle = await idle_transactions(world)
    return figures, idle


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def report(figures: dict[str, Samples], idle: float) -> bool:
    met = idle <= IDLE_AIM
    for name, samples in figures.items():
        table = Table(title=f"{name} (ms)")
        for column in ("part", "median", "p95", "aim", ""):
            table.add_column(column, justify="left" if column in ("part", "") else "right")
        for part, values in samples.items():
            middle = statistics.median(values)
            cells = [part, f"{middle:.1f}", f"{percentile(values, 0.95):.1f}"]
            if aim := AIMS.get((name, part)):
                cells += [f"≤ {aim:g}", "met" if middle <= aim else "missed"]
                met = met and middle <= aim
            table.add_row(*cells)
        Console(width=100).print(table)
    print(f"An idle worker makes {idle:.2f} transactions/s (aim: at most {IDLE_AIM:g}).")
    print(f"Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")
    file = Path("bench-results") / "latency.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"ms": figures, "idle transactions/s": idle}, indent=2) + "\n")
    return met


async def main(count: int) -> int:
    configure_logging("WARNING", "console")
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS) as stack:
            figures, idle = await measure(stack, count)
    return 0 if report(figures, idle) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=25)
    raise SystemExit(asyncio.run(main(parser.parse_args().tasks)))
