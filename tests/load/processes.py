"""What a request and a task cost with 1, 2 and 4 `serve` and `worker` processes: `make scale`.

    python -m tests.load.processes

The three deployments run side by side on one stack and take turns. Each process has the same load
in all of them: so many requests per second of the same accounts. As many requests as it can answer
would not be the same load, because four processes share two processors. What costs more with more
processes would limit how far a deployment can grow. The processor time of all parts together must
stay within 15 % of that of one process of each kind.

What idle processes use is measured between the turns and subtracted. A deployment with work for one
process that runs four pays for three idle ones; the table shows how much that is.
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
from tests.load.fleet import PARTS, STACK_PARTS, Fleet, Metered, write_json
from tests.load.raw_http import request
from tests.load.statements import BODY
from tests.runs.scripted import says
from tests.service import Person

SIZES = (1, 2, 4)
WITHIN = 0.15
ACCOUNTS = 32
# For each `serve` process.
AT_ONCE = 16
PER_S = 100
RESULTS = Path("bench-results/processes.json")


@dataclass
class Deployment:
    fleet: Fleet
    people: list[Person]
    script: str
    requests: list[bytes]
    # By operation.
    found: dict[str, list[Metered]]
    idle: list[Metered] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.fleet.serves)

    def cpu_ms(self, operation: str, *parts: str) -> float:
        """Of one operation, without what the processes use when nothing happens."""
        idle = self.idle_ms(*parts)
        return statistics.median(
            each.cpu_ms(*parts) - idle * each.seconds / each.count for each in self.found[operation]
        )

    def idle_ms(self, *parts: str) -> float:
        """In a second without work."""
        return statistics.median(each.cpu_ms(*parts) / each.seconds for each in self.idle)

    async def turn(self, operation: str, per_process: int) -> Metered:
        count, at_once = per_process * self.size, AT_ONCE * self.size
        async with self.fleet.metered(count) as result:
            if operation == "task":
                await self.fleet.tasks(self.people, self.script, count, at_once)
            else:
                await self.fleet.send(self.requests, count, at_once, 201, PER_S * self.size)
        return result[0]


async def deployed(fleet: Fleet) -> Deployment:
    people = await fleet.people(ACCOUNTS)
    script = await fleet.scripted.script(says("Done."))
    sent = [request("POST", "/api/tasks", person.token, BODY) for person in people]
    return Deployment(fleet, people, script, sent, {"request": [], "task": []})


def report(all_of_them: Sequence[Deployment]) -> bool:
    table = Table(title="Processor time with more processes (ms, medians of the rounds)")
    for column in ("operation", "processes", *PARTS, "all", "ratio", "target", ""):
        table.add_column(column, justify="left" if column in ("operation", "") else "right")
    met = True
    rows: list[dict[str, Any]] = []
    for operation in ("request", "task"):
        base = all_of_them[0].cpu_ms(operation)
        for each in all_of_them:
            ratio = each.cpu_ms(operation) / base
            fine = abs(ratio - 1) <= WITHIN or ratio < 1
            met = met and fine
            cpu = {part: each.cpu_ms(operation, part) for part in PARTS}
            rows.append(
                {"operation": operation, "processes": each.size, "cpuMs": cpu, "ratio": ratio}
            )
            table.add_row(
                operation,
                f"{each.size} + {len(each.fleet.workers)}",
                *[f"{cpu[part]:.2f}" for part in PARTS],
                f"{each.cpu_ms(operation):.2f}",
                f"{ratio:.2f}",
                f"≤ {1 + WITHIN:.2f}",
                "met" if fine else "MISSED",
            )
    for each in all_of_them:
        cpu = {part: each.idle_ms(part) for part in PARTS}
        rows.append({"operation": "idle second", "processes": each.size, "cpuMs": cpu})
        table.add_row(
            "idle second",
            f"{each.size} + {len(each.fleet.workers)}",
            *[f"{cpu[part]:.1f}" for part in PARTS],
            f"{each.idle_ms():.1f}",
        )
    Console(width=120).print(table)
    write_json(RESULTS, rows)
    return met


async def main(sizes: Sequence[int], rounds: int, requests: int, tasks: int) -> int:
    configure_logging("WARNING", "console")
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    async with AsyncExitStack() as exits:
        data = exits.enter_context(tempfile.TemporaryDirectory())
        stack = await exits.enter_async_context(Stack(Path(data), components=STACK_PARTS))
        all_of_them = []
        for size in sizes:
            fleet = Fleet.of(stack, f"processes_{size}", serves=size, workers=size)
            all_of_them.append(await deployed(await exits.enter_async_context(fleet)))
        counts = {"request": requests, "task": tasks}
        for each in all_of_them:
            for operation, count in counts.items():
                # Every process plans its statements and fills its caches once.
                await each.turn(operation, count // 2)
        for number in range(rounds):
            for each in all_of_them if number % 2 else reversed(all_of_them):
                each.idle.append(await each.fleet.idle())
                for operation, count in counts.items():
                    each.found[operation].append(await each.turn(operation, count))
        met = report(all_of_them)
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1_000, help="for each process")
    parser.add_argument("--tasks", type=int, default=80, help="for each process")
    given = parser.parse_args()
    raise SystemExit(asyncio.run(main(given.sizes, given.rounds, given.requests, given.tasks)))
