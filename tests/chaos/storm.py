"""Kills random components of the service under load, and checks that nothing is lost.

    python -m tests.chaos.storm --tasks 1000 --kills 120 --seed 1

People create tasks and retry until they get an answer. Workers (which also run the relay), the
API, Temporal, Redis and PostgreSQL are killed with SIGKILL in an order that depends on the seed,
and start again after a moment. When all tasks have ended, every invariant is checked.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.processes import Component
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.telemetry import configure_logging
from tests.chaos.invariants import model_calls, violations
from tests.chaos.world import PARTS, TERMINAL, World, start_again, write_report
from tests.service import Person

PEOPLE = 8
# How often each component is chosen, relative to the others.
VICTIMS = {"worker": 5, "api": 2, "temporal": 2, "redis": 1, "postgres": 2}
# Parallel requests of one person, so that changes of one account also collide.
AT_ONCE = 2


@dataclass
class Storm:
    world: World
    tasks: int
    kills: int
    seed: int
    victims: Collection[str] = tuple(VICTIMS)
    people: list[Person] = field(default_factory=list)
    # Task ID and the person who created the task.
    acknowledged: dict[str, Person] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    billed: int = 0
    asked: int = 0
    storm_s: float = 0
    settled_s: float = 0

    async def run(self) -> None:
        began = time.monotonic()
        self.people = [await self.world.newcomer() for _ in range(PEOPLE)]
        # Slow enough that some tasks are always in progress.
        script = await self.world.six_steps(delay_s=0.7, name="storm")
        over = asyncio.Event()
        deciding = asyncio.create_task(self._decide(over))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._kill())
            for person in self.people:
                for _ in range(AT_ONCE):
                    group.create_task(self._create(person, script))
        self.storm_s = time.monotonic() - began
        began = time.monotonic()
        await self.settle()
        over.set()
        await deciding
        self.settled_s = time.monotonic() - began
        self.wrong = await violations(self.world, self.acknowledged)
        self.counts = await self.world.counts()
        self.billed, self.asked = await model_calls(self.world)

    async def _create(self, person: Person, script: str) -> None:
        """Creates tasks at the pace of the kills, so that both end at the same time."""
        share = self.tasks // (PEOPLE * AT_ONCE)
        for number in range(share):
            while sum(self.killed.values()) < self.kills * number // share:
                await asyncio.sleep(0.1)
            task_id = await self.world.create(person, "writer", script)
            self.acknowledged[task_id] = person

    async def _kill(self) -> None:
        rng = random.Random(self.seed)
        names = [name for name in VICTIMS if name in self.victims]
        weights = [VICTIMS[name] for name in names]
        # Each component once, then random ones.
        order = rng.sample(names, len(names)) + rng.choices(names, weights, k=self.kills)
        for name in order[: self.kills]:
            victim = self._victim(name, rng)
            calm_s, away_s = rng.uniform(0.5, 3), rng.choice((0, 0.5, 2, 4))
            await asyncio.sleep(calm_s)
            await victim.kill()
            self.killed[name] += 1
            await asyncio.sleep(away_s)
            await start_again(victim)

    def _victim(self, name: str, rng: random.Random) -> Component:
        if name == "worker":
            return rng.choice(self.world.workers)
        return self.world.api if name == "api" else self.world.stack.component(name)

    async def _decide(self, over: asyncio.Event) -> None:
        """Approves and rejects unknown writes in turn."""
        while not over.is_set():
            await asyncio.sleep(1)
            try:
                rows = await self.world.query(
                    "SELECT id FROM tasks WHERE status = 'WAITING_APPROVAL'"
                )
            except OSError:
                continue  # The database is being killed.
            except Exception as error:
                # asyncpg has many error classes for a server that is starting or stopping.
                if type(error).__module__.split(".")[0] != "asyncpg":
                    raise
                continue
            for row in rows:
                await self._decide_on(ids.to_wire("task", row["id"]))

    async def _decide_on(self, task_id: str) -> None:
        person = self.acknowledged.get(task_id)
        if person is None:
            return  # Its creation is not acknowledged yet.
        path = f"/api/tasks/{task_id}/review"
        review = (await self.world.request_until_response(person, "GET", path)).json()["review"]
        body: dict[str, Any] = {"review": {"number": review["number"], "digest": review["digest"]}}
        approve = sum(self.decided.values()) % 2 == 0
        verb, body = ("approve", body) if approve else ("reject", {"resume": True, **body})
        answer = await self.world.request_until_response(
            person, "POST", f"/api/tasks/{task_id}/{verb}", body
        )
        if answer.status_code == 200:
            self.decided["approved" if approve else "rejected"] += 1

    async def settle(self) -> None:
        async def quiet() -> bool:
            counts = await self.world.counts()
            [row] = await self.world.query(
                "SELECT count(*) AS instructions FROM outbox WHERE kind <> 'run.check'"
            )
            return not set(counts) - set(TERMINAL) and not row["instructions"]

        async with asyncio.timeout(300):
            while not await quiet():
                await asyncio.sleep(0.5)

    @property
    def holds(self) -> bool:
        return not any(self.wrong.values()) and not self.world.unexpected

    def figures(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "tasks acknowledged": len(self.acknowledged),
            "kills": sum(self.killed.values()),
            "killed": dict(self.killed),
            "status": self.counts,
            "unknown writes decided by a person": dict(self.decided),
            "model calls billed": self.billed,
            "model calls that reached the provider": self.asked,
            "seconds with kills": round(self.storm_s, 1),
            "seconds until settled": round(self.settled_s, 1),
            "unexpected 5xx answers": len(self.world.unexpected),
            "violations": self.wrong,
        }


async def storm(
    stack: Stack, *, tasks: int, kills: int, seed: int, victims: Collection[str] = tuple(VICTIMS)
) -> Storm:
    async with World.start(stack, "storm") as world:
        found = Storm(world, tasks, kills, seed, victims)
        try:
            await found.run()
        except TimeoutError:
            found.wrong = await violations(world, found.acknowledged)
        return found


def report(found: Storm) -> None:
    figures = found.figures()
    table = Table(title="Random kills under load")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        if isinstance(value, dict):
            table.add_section()
            for key, part in value.items():
                table.add_row(key if name == "violations" else f"{name}: {key}", str(part))
        else:
            table.add_row(name, str(value))
    Console(width=100).print(table)
    for answer in found.world.unexpected[:5]:
        print(answer)
    write_report(f"storm of {figures['kills']} kills", figures)


async def main(tasks: int, kills: int, seed: int, victims: list[str], durable: bool) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS, durable=durable) as stack:
            found = await storm(stack, tasks=tasks, kills=kills, seed=seed, victims=victims)
    report(found)
    return 0 if found.holds else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1008)
    parser.add_argument("--kills", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=list(VICTIMS))
    parser.add_argument(
        "--no-fsync", action="store_true", help="run PostgreSQL without fsync, as CI does"
    )
    o = parser.parse_args()
    raise SystemExit(asyncio.run(main(o.tasks, o.kills, o.seed, o.victims, not o.no_fsync)))
