"""Measures live text: from a chunk of the provider to the watchers, and what watching costs a run.

    python -m tests.load.live_bench

The scripted provider writes the time into each chunk when it sends it. The watchers compare that
with their own clock, on the same machine. There are three parts: one run with one watcher, one run
with many watchers, and many runs with one watcher each, which are compared with the same runs
without watchers. All processes share the machine.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.telemetry import configure_logging
from tests.chaos.world import PARTS, World
from tests.load.latency_bench import percentile
from tests.service import Person

MEDIAN_AIM_MS, P99_AIM_MS = 30.0, 150.0
SLOWER_AIM = 1.05
RUNS_PER_ACCOUNT = 10
# Runs of different people do not begin or end at the same moment. If 500 of them ended within a few
# seconds, this would measure how many runs two processors can end in a second.
SPREAD_S = 30.0
# Long runs, so that all of them are written at the same time for a minute.
LONG_RUN = 3

STAMP = re.compile(rb"(\d{10}\.\d{6}) ")


@dataclass
class Options:
    watchers: int
    runs: int
    chunks: int
    pace_s: float


@dataclass
class Figures:
    # Milliseconds of each chunk, for each part.
    latencies: dict[str, list[float]] = field(default_factory=dict)
    # Seconds of each run.
    watched: list[float] = field(default_factory=list)
    unwatched: list[float] = field(default_factory=list)

    @property
    def slower(self) -> float:
        """The slowest watched run, compared with the slowest one without a watcher."""
        return max(self.watched) / max(self.unwatched)


class Watch:
    """A client of a task's stream that does as little as possible."""

    def __init__(self, world: World, person: Person, task_id: str) -> None:
        self._port = world.settings.port
        self._request = (
            f"GET /api/tasks/{task_id}/events HTTP/1.1\r\nHost: rota\r\n"
            f"Authorization: Bearer {person.token}\r\nConnection: close\r\n\r\n"
        ).encode()
        self.opened = asyncio.Event()
        self.latencies: list[float] = []

    async def run(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(self._request)
        rest = await reader.readuntil(b"\r\n\r\n")
        assert rest.startswith(b"HTTP/1.1 200"), rest
        self.opened.set()
        while piece := await reader.read(65536):
            now = time.time()
            rest += piece
            end = 0
            for stamp in STAMP.finditer(rest):
                self.latencies.append((now - float(stamp.group(1))) * 1000)
                end = stamp.end()
            rest = rest[end:][-64:]
        writer.close()


async def _script(world: World, chunks: int, pace_s: float, spread_s: float = 0) -> str:
    """A script whose calls all wait until it is released."""
    turn = {"stamps": chunks, "paceS": pace_s, "holdAfter": 0, "outputTokens": chunks}
    turn["spreadS"] = spread_s
    return await world.scripted.script(turn)


async def _begun(world: World, script: str, runs: int) -> None:
    """Waits until all runs have called the model."""
    async with asyncio.timeout(300):
        while len(await world.scripted.asked(script)) < runs:
            await asyncio.sleep(0.2)


async def _many(
    world: World, tasks: Sequence[tuple[Person, str]], script: str, watches: Sequence[Watch]
) -> list[float]:
    """Lets the runs go on, and returns how long each took from then on, in seconds."""
    await _begun(world, script, len(tasks))
    following = []
    async with asyncio.timeout(120):
        # One after the other: opening is not what this measures.
        for watch in watches:
            following.append(asyncio.create_task(watch.run()))
            opened = asyncio.create_task(watch.opened.wait())
            await asyncio.wait({opened, following[-1]}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(2)
    began = time.time()
    await world.scripted.release(script)
    wanted = [ids.from_wire("task", task_id) for _, task_id in tasks]
    async with asyncio.timeout(600), world.service.owner() as connection:
        while True:
            await asyncio.sleep(0.5)
            rows = await connection.fetch(
                "SELECT extract(epoch FROM finished_at)::float AS ended FROM tasks "
                "WHERE id = ANY($1) AND status = 'COMPLETED'",
                wanted,
            )
            if len(rows) == len(wanted):
                break
    async with asyncio.timeout(60):
        await asyncio.gather(*following)
    return [row["ended"] - began for row in rows]


async def _tasks(
    world: World, people: Sequence[Person], script: str, count: int
) -> list[tuple[Person, str]]:
    turn = asyncio.Semaphore(8)

    async def create(person: Person) -> tuple[Person, str]:
        async with turn:
            return person, await world.create(person, "writer", script)

    return await asyncio.gather(*[create(people[n % len(people)]) for n in range(count)])


async def measure(stack: Stack, options: Options) -> Figures:
    figures = Figures()
    most = max(options.watchers, options.runs) + 10
    async with World.start(
        stack,
        "live_bench",
        workers=1,
        run_heartbeat_s=30.0,
        streams=2 * most,
        streams_per_account=most,
        worker_calls=most,
        database_pool_size=16,
    ) as world:
        people = [await world.newcomer() for _ in range(max(1, options.runs // RUNS_PER_ACCOUNT))]

        async def one(name: str, watchers: int, chunks: int, pace_s: float) -> None:
            script = await _script(world, chunks, pace_s)
            tasks = await _tasks(world, people, script, 1)
            watches = [Watch(world, *tasks[0]) for _ in range(watchers)]
            await _many(world, tasks, script, watches)
            figures.latencies[name] = [ms for watch in watches for ms in watch.latencies]
            received = Counter(len(watch.latencies) for watch in watches)
            assert received == {chunks: watchers}, (name, received)

        await one("warm-up", 1, 20, 0.01)
        del figures.latencies["warm-up"]
        await one("1 run, 1 watcher", 1, 10 * options.chunks, 0.05)
        await one(
            f"1 run, {options.watchers} watchers", options.watchers, options.chunks, options.pace_s
        )
        for watched in (False, True):
            chunks = LONG_RUN * options.chunks
            script = await _script(world, chunks, options.pace_s, SPREAD_S)
            tasks = await _tasks(world, people, script, options.runs)
            watches = [Watch(world, *task) for task in tasks] if watched else []
            taken = await _many(world, tasks, script, watches)
            if watched:
                figures.watched = taken
                name = f"{options.runs} runs, 1 watcher each"
                figures.latencies[name] = [ms for watch in watches for ms in watch.latencies]
                assert all(len(watch.latencies) == chunks for watch in watches)
            else:
                figures.unwatched = taken
    return figures


def report(figures: Figures) -> bool:
    met = figures.slower <= SLOWER_AIM
    table = Table(title="From the provider's chunk to the watcher (ms)")
    for column in ("part", "chunks", "median", "p99", "slowest", ""):
        table.add_column(column, justify="left" if column in ("part", "") else "right")
    results: dict[str, Any] = {"slower": figures.slower}
    for name, values in figures.latencies.items():
        middle, p99 = statistics.median(values), percentile(values, 0.99)
        good = middle <= MEDIAN_AIM_MS and p99 <= P99_AIM_MS
        met = met and good
        cells = [f"{len(values):,}", *(f"{ms:.1f}" for ms in (middle, p99, max(values)))]
        table.add_row(name, *cells, "met" if good else "missed")
        results[name] = {"median": middle, "p99": p99, "slowest": max(values)}
    Console(width=100).print(table)
    print(f"Aims: median at most {MEDIAN_AIM_MS:g} ms, p99 at most {P99_AIM_MS:g} ms.")
    print(
        f"The slowest watched run took {max(figures.watched):.2f} s, the slowest one without a "
        f"watcher {max(figures.unwatched):.2f} s: {figures.slower:.3f} times "
        f"(aim: at most {SLOWER_AIM:g})."
    )
    print(f"Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")
    file = Path("bench-results") / "live.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(results, indent=2) + "\n")
    return met


async def main(options: Options) -> int:
    configure_logging("WARNING", "console")
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS) as stack:
            figures = await measure(stack, options)
    return 0 if report(figures) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--chunks", type=int, default=60)
    parser.add_argument("--pace-s", type=float, default=0.5)
    raise SystemExit(asyncio.run(main(Options(**vars(parser.parse_args())))))
