"""Compares Temporal's development server with a server on PostgreSQL: `make scale`.

    python -m tests.load.temporal_bench

Two deployments of one `serve` and one `worker` take turns. One uses the development server with
SQLite, like `rota dev`. The other uses the server and the configuration of deploy/compose, with a
PostgreSQL of its own, whose processor time counts as Temporal's. What the processes use without
work is subtracted.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.load.fleet import PARTS, STACK_PARTS, Fleet, pid_of, write_json
from tests.load.runs_bench import run_s
from tests.load.temporal_cluster import DebianPostgres, TemporalCluster
from tests.runs.runner import new_namespace
from tests.runs.scripted import says
from tests.service import Person

ACCOUNTS = 32
AT_ONCE = 16
SINGLE = 10
RESULTS = Path("bench-results/temporal.json")


class ClusterFleet(Fleet):
    cluster_pids: Sequence[int] = ()

    def temporal_roots(self) -> list[int]:
        return list(self.cluster_pids)


@dataclass
class Side:
    name: str
    fleet: Fleet
    people: list[Person]
    script: str
    per_s: list[float] = field(default_factory=list)
    # By part, for each task.
    cpu_ms: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})
    alone_ms: list[float] = field(default_factory=list)

    async def turn(self, count: int) -> None:
        idle = await self.fleet.idle()
        async with self.fleet.metered(count) as result:
            await self.fleet.tasks(self.people, self.script, count, AT_ONCE)
        [found] = result
        self.per_s.append(found.per_s)
        for part, values in self.cpu_ms.items():
            idle_ms = idle.cpu_ms(part) / idle.seconds
            values.append(found.cpu_ms(part) - idle_ms * found.seconds / count)
        for _ in range(SINGLE):
            seconds = await run_s(self.fleet, self.people[0], self.script, since="created_at")
            self.alone_ms.append(1000 * seconds)


async def _side(name: str, fleet: Fleet) -> Side:
    script = await fleet.scripted.script(says("Done."))
    return Side(name, fleet, await fleet.people(ACCOUNTS), script)


async def measure(folder: Path, rounds: int, tasks: int) -> list[Side]:
    async with AsyncExitStack() as exits:

        async def started(name: str, **options: Any) -> Stack:
            return await exits.enter_async_context(Stack(folder / name, **options))

        below = await started("below", components=())
        postgres = DebianPostgres(below.site)
        await below.add(postgres)
        cluster = TemporalCluster(below.site, postgres)
        await below.add(cluster)
        await new_namespace(cluster.address, "default")
        address = {"ROTA_TEMPORAL_ADDRESS": cluster.address}
        usual = await started("usual", components=STACK_PARTS)
        other = await started("other", components=STACK_PARTS, environ=address)
        first = await exits.enter_async_context(Fleet.of(usual, "temporal_usual"))
        second = await exits.enter_async_context(ClusterFleet.of(other, "temporal_cluster"))
        assert isinstance(second, ClusterFleet)
        second.cluster_pids = [pid_of(cluster), pid_of(postgres)]
        sides = [await _side("development server", first), await _side("PostgreSQL", second)]
        for side in sides:
            await side.fleet.tasks(side.people, side.script, tasks // 2, AT_ONCE)
        for number in range(rounds):
            for side in sides if number % 2 else reversed(sides):
                await side.turn(tasks)
        return sides


def report(sides: Sequence[Side]) -> None:
    table = Table(title="Tasks of one model call, by Temporal's server (medians)")
    columns = ("server", "tasks/s", "task alone, ms", *(f"{part}, ms" for part in PARTS), "all, ms")
    for column in columns:
        table.add_column(column, justify="left" if column == "server" else "right")
    rows = []
    for side in sides:
        rate, alone = statistics.median(side.per_s), statistics.median(side.alone_ms)
        cpu = {part: statistics.median(values) for part, values in side.cpu_ms.items()}
        table.add_row(
            side.name,
            f"{rate:.1f}",
            f"{alone:.0f}",
            *[f"{cpu[part]:.2f}" for part in PARTS],
            f"{sum(cpu.values()):.2f}",
        )
        rows.append({"server": side.name, "perSecond": rate, "aloneMs": alone, "cpuMs": cpu})
    Console(width=130).print(table)
    write_json(RESULTS, rows)


async def main(rounds: int, tasks: int) -> None:
    configure_logging("WARNING", "console")
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    with tempfile.TemporaryDirectory() as folder:
        report(await measure(Path(folder), rounds, tasks))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=120)
    given = parser.parse_args()
    asyncio.run(main(given.rounds, given.tasks))
