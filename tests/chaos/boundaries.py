"""Kills a worker with SIGKILL before and after every commit of a run.

    python -m tests.chaos.boundaries --times 10

The run has six steps: start, model call, call to a read-only tool, model call, call to a writing
tool, model call. Each time another worker continues the run, and it completes as if nothing had
happened. The only exception: if the worker dies between the start of a write and its result, the
outcome is unknown, and a person decides.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rota.agents.sync import sync
from rota.dev.processes import Component, Site
from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.invariants import violations
from tests.chaos.world import PARTS, READY_WITHIN_S, World, write_report
from tests.runs.runner import CATALOG, new_namespace, until
from tests.runs.scripted import Scripted
from tests.service import Person, Service

LANES = 6


@dataclass(frozen=True)
class Boundary:
    at: str
    number: int
    when: str

    @property
    def meaning(self) -> str:
        return f"{self.when} {_MEANINGS[self.at, self.number]}"

    @property
    def needs_decision(self) -> bool:
        """Whether it is unknown if the write took effect."""
        return self._place in (WRITE_STARTED, WRITE_MADE)

    @property
    def _place(self) -> tuple[str, int, str]:
        return self.at, self.number, self.when

    def writes(self, *, approved: bool) -> int:
        """How often the write tool acts in total."""
        if self._place == WRITE_STARTED:
            return 1 if approved else 0
        if self._place == WRITE_MADE:
            return 2 if approved else 1
        return 1

    @property
    def reads(self) -> int:
        return 2 if self._place == READ_MADE else 1

    def model_calls(self) -> dict[int, int]:
        """How often each turn is called: twice if its answer was not charged yet."""
        again = self.number // 3 if self._place in ANSWERED else None
        return {turn: 2 if turn == again else 1 for turn in range(3)}


# The commits of a run's slice, in order.
COMMITS = (
    "the run starts",
    "the first answer is charged",
    "the first answer is applied, and the read starts",
    "the read's result",
    "the second answer is charged",
    "the second answer is applied, and the write starts",
    "the write's result",
    "the last answer is charged",
    "the last answer is applied",
)
_MEANINGS = {("relay", 1): "the relay starts the run"} | {
    ("slice", number): meaning for number, meaning in enumerate(COMMITS, 1)
}
ANSWERED = [("slice", number, "before") for number in (2, 5, 8)]
READ_MADE = ("slice", 4, "before")
WRITE_STARTED, WRITE_MADE = ("slice", 6, "after"), ("slice", 7, "before")
BOUNDARIES = [Boundary(*at, when) for at in _MEANINGS for when in ("before", "after")]


class WorkerForks(Component):
    name = "worker-forks"
    ready_within_s = READY_WITHIN_S

    def __init__(self, site: Site, folder: Path) -> None:
        super().__init__(site)
        self.folder = folder

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "tests.chaos.worker_forks", str(self.folder)]

    async def check(self) -> None:
        (self.folder / "ready").stat()


@dataclass
class Lane:
    """A service with one worker that is killed. Several lanes run in parallel."""

    world: World
    person: Person
    kill: Path
    tasks: list[str] = field(default_factory=list)
    seconds: dict[Boundary, list[float]] = field(default_factory=dict)
    died: int = 0
    asked: int = 0
    # Model calls that are not explained by the kills.
    repeated: int = 0

    @property
    def deaths(self) -> int:
        file = self.kill.with_suffix(".deaths")
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def die_at(self, boundary: Boundary, *, approve: bool) -> None:
        world, person = self.world, self.person
        script = await world.six_steps()
        deaths = self.deaths
        self.select(boundary, signal.SIGKILL)
        began = time.monotonic()
        task_id = await world.create(person, "writer", script)
        self.tasks.append(task_id)
        statuses = ("WAITING_APPROVAL",) if boundary.needs_decision else ("COMPLETED",)
        await world.until(person, task_id, *statuses, "FAILED")
        if boundary.needs_decision:
            await self.decide(task_id, approve=approve)
        task = await world.until(person, task_id, "COMPLETED", "FAILED")
        self.seconds.setdefault(boundary, []).append(time.monotonic() - began)
        assert task["status"] == "COMPLETED", (boundary, task["error"])
        await self.check(boundary, script, task, approve=approve)
        await until(self._count_deaths, lambda count: count == deaths + 1, 30)
        self.died += 1

    async def _count_deaths(self) -> int:
        return self.deaths

    def select(self, boundary: Boundary, what: signal.Signals) -> None:
        """Where the worker gets this signal."""
        wanted = {"at": boundary.at, "number": boundary.number, "when": boundary.when}
        self.kill.write_text(json.dumps(wanted | {"signal": int(what)}))

    async def decide(self, task_id: str, *, approve: bool) -> None:
        self.asked += 1
        answer = await self.person.get(f"/api/tasks/{task_id}/review")
        [item] = answer.json()["review"]["items"]
        assert item["tool"] == "send", item
        assert "unknown whether it took effect" in item["reason"], item
        verb, body = ("approve", None) if approve else ("reject", {"resume": True})
        answer = await self.person.post(f"/api/tasks/{task_id}/{verb}", body)
        assert answer.status_code == 200, answer.text

    async def check(
        self, boundary: Boundary, script: str, task: dict[str, object], *, approve: bool
    ) -> None:
        scripted = self.world.scripted
        assert not self.kill.exists(), f"the worker was not killed {boundary.meaning}"
        done = Counter(call["tool"] for call in await scripted.done(script.partition(":")[2]))
        assert done["send"] == boundary.writes(approved=approve), (boundary, done)
        # On a busy machine, heartbeats can be late, and calls that can be repeated are repeated.
        asked = await scripted.count(script)
        wanted = boundary.model_calls()
        assert done["lookup"] >= boundary.reads, (boundary, done)
        assert all(asked[turn] >= count for turn, count in wanted.items()), (boundary, asked)
        self.repeated += sum(asked.values()) - sum(wanted.values())
        usage = task["usage"]
        assert isinstance(usage, dict)
        assert (usage["steps"], usage["inputTokens"], usage["outputTokens"]) == (3, 30, 15)
        answer = await self.person.get(f"/api/tasks/{task['id']}/timeline")
        kinds = [step["kind"] for step in answer.json()["steps"]]
        calls = [kind for kind in kinds if kind in ("model", "tool")]
        assert calls == ["model", "tool", "model", "tool", "model"], kinds


@asynccontextmanager
async def lanes(
    stack: Stack, prefix: str = "boundary", count: int = LANES
) -> AsyncIterator[list[Lane]]:
    """Each lane has its own database and namespace, so they do not share work."""
    async with AsyncExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        scripted = await exits.enter_async_context(Scripted.start())
        found: list[Lane] = []

        async def open_lane(number: int) -> None:
            name = f"{prefix}_{number}"
            namespace = name.replace("_", "-")
            await new_namespace(stack.endpoints.temporal_address, namespace)
            service = await exits.enter_async_context(
                Service.start(
                    stack,
                    variant="a",
                    name=name,
                    temporal_namespace=namespace,
                    run_heartbeat_s=5.0,
                    log_level="WARNING",
                )
            )
            await sync(service.database_url, CATALOG)
            world = World(stack, scripted, service.settings)
            exits.push_async_callback(world.http.aclose)
            lane = folder / f"{name}.lane"
            lane.write_text(json.dumps(world.variables(None)))
            found.append(Lane(world, await world.newcomer(), lane.with_suffix(".kill")))

        for number in range(count):
            await open_lane(number)
        forks = WorkerForks(stack.site, folder)
        await forks.start()
        exits.push_async_callback(forks.kill)
        yield found


async def kill_at_every_boundary(stack: Stack, times: int = 1) -> list[Lane]:
    """Kills a worker at every boundary this many times. The lanes share the work."""
    waiting = [(b, number) for number in range(times) for b in BOUNDARIES]
    async with lanes(stack) as found:

        async def work_through(lane: Lane) -> None:
            while waiting:
                boundary, number = waiting.pop(0)
                # A person approves one unknown write and rejects the next.
                approve = (number + (boundary.when == "after")) % 2 == 0
                await lane.die_at(boundary, approve=approve)

        await asyncio.gather(*map(work_through, found))
        for lane in found:
            wrong = await violations_of(lane)
            assert not any(wrong.values()), wrong
    return found


async def violations_of(lane: Lane) -> dict[str, int]:
    async def look() -> dict[str, int]:
        return await violations(lane.world, lane.tasks)

    # The relay may still be handling the last instruction.
    return await until(
        look, lambda wrong: not wrong["instructions still in the outbox"], deadline_s=60
    )


async def main(times: int) -> None:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS, durable=False) as stack:
            found = await kill_at_every_boundary(stack, times)
    seconds = {b: [s for lane in found for s in lane.seconds.get(b, [])] for b in BOUNDARIES}
    table = Table(title=f"A worker is killed at every commit of a run, {times} times each")
    for column in ("killed", "runs", "completed", "decided by a person", "seconds, median"):
        table.add_column(column, justify="left" if column == "killed" else "right")
    for boundary, taken in seconds.items():
        middle = sorted(taken)[len(taken) // 2]
        table.add_row(
            boundary.meaning,
            str(len(taken)),
            str(len(taken)),
            str(len(taken) if boundary.needs_decision else 0),
            f"{middle:.1f}",
        )
    Console(width=100).print(table)
    write_report(
        "boundaries",
        {
            "kills": sum(lane.died for lane in found),
            "runs": sum(len(lane.tasks) for lane in found),
            "asked": sum(lane.asked for lane in found),
            "model calls not explained by a kill": sum(lane.repeated for lane in found),
            "seconds": {b.meaning: sorted(s)[len(s) // 2] for b, s in seconds.items()},
        },
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    asyncio.run(main(parser.parse_args().times))
