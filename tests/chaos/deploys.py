"""Restarts workers in turns under load, as a deploy does, and checks that nothing is repeated.

    python -m tests.chaos.deploys --restarts 20

Each task calls a slow model, a slow write tool and the slow model again. In turns, one of two
workers gets SIGTERM, exits and is started again, with the default settings. A worker that stops
finishes its calls, so every model call is bought once, every write is made once, and no person is
asked about a write.
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from rota.dev.processes import Component
from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos import world
from tests.chaos.invariants import violations
from tests.chaos.world import PARTS, World, write_report
from tests.runs.runner import until
from tests.runs.scripted import calls, says
from tests.service import Person

PEOPLE = 8
# Tasks of one person at the same time.
AT_ONCE = 3
# What docs/operating.md tells operators to give a worker.
GRACE_S = 620


class Worker(world.Worker):
    grace_s = GRACE_S


class SecondWorker(world.SecondWorker):
    grace_s = GRACE_S


class DeployedWorld(World):
    WORKERS = (Worker, SecondWorker)


@dataclass
class Deploys:
    world: World
    restarts: int
    model_s: float
    write_s: float
    # Task ID and the script of its model.
    scripts: dict[str, str] = field(default_factory=dict)
    # When each worker got SIGTERM, and how long it took to exit.
    stopped_at: list[float] = field(default_factory=list)
    stop_s: list[float] = field(default_factory=list)
    seconds: float = 0
    figures: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)

    @property
    def task_s(self) -> float:
        return 2 * self.model_s + self.write_s

    async def run(self) -> None:
        began = time.monotonic()
        people = [await self.world.newcomer() for _ in range(PEOPLE)] * AT_ONCE
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number, person in enumerate(people):
                # Spread, so that calls begin and end at any time.
                later_s = self.task_s * number / len(people)
                group.create_task(self._work(person, later_s, over))
            await self._restart()
            over.set()
        self.seconds = time.monotonic() - began
        await self._check()

    async def _work(self, person: Person, later_s: float, over: asyncio.Event) -> None:
        """Runs one task after the other."""
        await asyncio.sleep(later_s)
        while not over.is_set():
            task_id = await self._create(person)
            await self._until_end(person, task_id)

    async def _create(self, person: Person) -> str:
        ref = f"r{uuid4().hex[:12]}"
        scripted = self.world.scripted
        await scripted.http.post(f"/always/{ref}", json={"delayS": self.write_s})
        script = await scripted.script(
            calls(("desk__send", {"ref": ref, "text": "hello"}), delayS=self.model_s),
            says("Done.", delayS=self.model_s),
            name=ref,
        )
        task_id = await self.world.create(person, "writer", script)
        self.scripts[task_id] = script
        return task_id

    async def _until_end(self, person: Person, task_id: str) -> None:
        """Also returns if the task waits for a person, which `_check` reports."""
        async with asyncio.timeout(10 * self.task_s + 120):
            while (await self.world.task(person, task_id))["status"] in ("PENDING", "RUNNING"):
                await asyncio.sleep(self.task_s / 40)

    async def _restart(self) -> None:
        await until(self._writes)
        for number in range(self.restarts):
            worker = self.world.workers[number % len(self.world.workers)]
            self.stopped_at.append(time.time())
            await _stop(worker)
            self.stop_s.append(time.time() - self.stopped_at[-1])
            await worker.start()

    async def _writes(self) -> list[dict[str, Any]]:
        answer = await self.world.scripted.http.get("/tool-calls")
        found: list[dict[str, Any]] = answer.json()
        return found

    async def _check(self) -> None:
        scripted = self.world.scripted
        asked = {script: await scripted.asked(script) for script in self.scripts.values()}
        model_calls = [call for made in asked.values() for call in made]
        distinct = {(script, call["turn"]) for script, made in asked.items() for call in made}
        writes = await self._writes()
        [row] = await self.world.query("SELECT count(*) AS n FROM entries WHERE kind = 'charge'")
        [reviews] = await self.world.query("SELECT count(*) AS n FROM reviews")
        counts = await self.world.counts()
        self.figures = {
            "restarts": len(self.stop_s),
            "seconds": round(self.seconds),
            "seconds until a worker exited, median": round(_middle(self.stop_s), 1),
            "seconds until a worker exited, longest": round(max(self.stop_s), 1),
            "tasks": len(self.scripts),
            "status": counts,
            "model calls": len(model_calls),
            "model calls in progress at a SIGTERM": self._in_progress(model_calls, self.model_s),
            "writes": len(writes),
            "writes in progress at a SIGTERM": self._in_progress(writes, self.write_s),
        }
        self.wrong = {
            "tasks that did not complete": len(self.scripts) - counts.get("COMPLETED", 0),
            "model calls bought twice": len(model_calls) - len(distinct),
            "model calls without a charge": len(model_calls) - row["n"],
            "writes made twice": len(writes) - len({call["key"] for call in writes}),
            "writes that a person was asked about": reviews["n"],
            # The relay may still be handling the last instruction.
            **await until(
                lambda: violations(self.world, self.scripts),
                lambda wrong: not wrong["instructions still in the outbox"],
                deadline_s=60,
            ),
        }

    def _in_progress(self, made: list[dict[str, Any]], seconds: float) -> int:
        """How many calls were in progress when a worker got SIGTERM, on any worker."""
        return sum(
            call["at"] <= at < call["at"] + seconds for at in self.stopped_at for call in made
        )

    @property
    def holds(self) -> bool:
        return not any(self.wrong.values()) and not self.world.unexpected


async def _stop(worker: Component) -> None:
    """Sends SIGTERM and waits. The worker must exit on its own."""
    child = worker._child
    assert child is not None
    await worker.stop()
    assert child.exit_code == 0, f"{worker.name} exited with code {child.exit_code}"


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


async def deploys(stack: Stack, *, restarts: int, model_s: float, write_s: float) -> Deploys:
    # The defaults of a worker, not those of other tests.
    defaults: dict[str, Any] = {"shutdown_grace_s": None, "run_heartbeat_s": 15.0}
    async with DeployedWorld.start(stack, "deploys", **defaults) as started:
        found = Deploys(started, restarts, model_s, write_s)
        await found.run()
        return found


def report(found: Deploys) -> None:
    table = Table(title="Rolling restarts of two workers under load")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in found.figures.items():
        table.add_row(name, str(value))
    table.add_section()
    for name, count in found.wrong.items():
        table.add_row(name, str(count))
    Console(width=100).print(table)
    for answer in found.world.unexpected[:5]:
        print(answer)
    write_report("deploys", found.figures | {"violations": found.wrong})


async def main(restarts: int, model_s: float, write_s: float) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS, durable=False) as stack:
            found = await deploys(stack, restarts=restarts, model_s=model_s, write_s=write_s)
    report(found)
    return 0 if found.holds else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--model-s", type=float, default=30, help="duration of a model call")
    parser.add_argument("--write-s", type=float, default=20, help="duration of a write")
    o = parser.parse_args()
    raise SystemExit(asyncio.run(main(o.restarts, o.model_s, o.write_s)))
