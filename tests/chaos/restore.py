"""Restores PostgreSQL to random moments of a storm, and checks what must hold afterwards.

    python -m tests.chaos.restore --tasks 240 --kills 20 --moments 5 --seed 1

People create tasks while workers and the API are killed. After the last moment, an account is
erased, a session is revoked and a task is cancelled. For each moment, the database is restored
from its base backup and its WAL, the restore is finished with `rota admin restore finish`, and
everything runs to its end.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.telemetry import configure_logging
from tests.chaos.invariants import MUST_BE_EMPTY, ledger_problems
from tests.chaos.recovery import Recovery
from tests.chaos.storm import Storm
from tests.chaos.world import PARTS, World, write_report
from tests.service import Person

PEOPLE = 4
VICTIMS = ("worker", "api")
SINCE_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
# A restore leaves a gap in the numbers of events, and only one.
_CHECKED = {
    name: sql for name, sql in MUST_BE_EMPTY.items() if name != "gaps in the sequence of events"
}


@dataclass
class Restores:
    world: World
    recovery: Recovery
    folder: Path
    tasks: int
    kills: int
    moments: int
    rng: random.Random
    people: list[Person] = field(default_factory=list)
    # When each task was acknowledged.
    acknowledged: dict[str, tuple[datetime, Person]] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)

    async def run(self) -> None:
        world = self.world
        self.people = [await world.newcomer() for _ in range(PEOPLE)]
        erased, revoked = await world.newcomer(), await world.service.sign_in()
        await self._create(erased, 1)
        # Its task is erased too.
        self.acknowledged.clear()
        await self.recovery.back_up()
        script = await world.six_steps(delay_s=0.3, name="restore")
        storm = Storm(world, self.tasks, self.kills, self.rng.randrange(10**6), VICTIMS)
        began = datetime.now(UTC)
        async with asyncio.TaskGroup() as group:
            group.create_task(storm._kill())
            for person in self.people:
                group.create_task(self._create(person, self.tasks // PEOPLE, script))
        ended = datetime.now(UTC)
        cancelled = await self._end_things(erased, revoked)
        await self._stop()
        calls = await self._writes()
        await self.recovery.archive_everything()
        # Soon after a task was acknowledged, so that some tasks are in progress.
        times = [at for at, _ in self.acknowledged.values() if began < at < ended]
        chosen = sorted(
            min(ended, at + timedelta(seconds=self.rng.uniform(0, 2)))
            for at in self.rng.sample(times, self.moments)
        )
        files = [await self._collect(moment) for moment in chosen]
        for moment, file in zip(chosen, files, strict=True):
            wrong = await self._restore(moment, file, calls, storm)
            wrong |= await self._hold(erased, revoked, cancelled)
            self.results.append({"moment": moment.isoformat(), **wrong})
            print(self.results[-1], flush=True)
            await self._stop()

    async def _create(self, person: Person, number: int, script: str = "") -> None:
        script = script or await self.world.six_steps()
        for _ in range(number):
            task_id = await self.world.create(person, "writer", script)
            self.acknowledged[task_id] = (datetime.now(UTC), person)

    async def _end_things(self, erased: Person, revoked: Person) -> str:
        """After the last moment: what must hold after each restore. Returns a cancelled task."""
        world = self.world
        slow = await world.six_steps(delay_s=5)
        await self._create(self.people[0], 1, slow)
        task_id = max(self.acknowledged, key=lambda each: self.acknowledged[each][0])
        path = f"/api/tasks/{task_id}"
        await world.request_until_response(self.people[0], "PATCH", path, {"status": "CANCELLED"})
        await self._rota("accounts", "erase", ids.to_wire("acct", erased.user_id), "--yes")
        [session] = (await revoked.get("/api/auth/sessions")).json()["sessions"]
        await world.request_until_response(revoked, "DELETE", f"/api/auth/sessions/{session['id']}")
        # A worker that starts says that the database lives, which the restored one does not know.
        await world.workers[0].restart()
        return task_id

    async def _stop(self) -> None:
        await asyncio.gather(*[each.kill() for each in (self.world.api, *self.world.workers)])

    async def _collect(self, moment: datetime) -> Path:
        path = self.folder / f"{moment.timestamp()}.jsonl"
        since = moment.strftime(SINCE_FORMAT)
        # The processes were killed. Their connections may take a moment longer to end.
        options = ("--final", "--ignore-connections", "--since", since, "--output", str(path))
        await self._rota("restore", "collect", *options)
        return path

    async def _restore(
        self, moment: datetime, file: Path, before: list[str], storm: Storm
    ) -> dict[str, Any]:
        world, began = self.world, time.monotonic()
        earlier = len(await self._writes())
        await self.recovery.restore(moment)
        replayed_s = time.monotonic() - began
        refused = await self._rota(command=("serve",), code=1)
        assert "restore finish" in refused, refused
        finishing = time.monotonic()
        await self._rota("restore", "finish", "--file", str(file))
        finished_s = time.monotonic() - finishing
        await asyncio.gather(*[each.start() for each in (world.api, *world.workers)])
        storm.acknowledged = {task: person for task, (_, person) in self.acknowledged.items()}
        over = asyncio.Event()
        deciding = asyncio.create_task(storm._decide(over))
        await storm.settle()
        over.set()
        await deciding
        after = await self._writes()
        wrong = {name: len(await world.query(sql)) for name, sql in _CHECKED.items()}
        stored = {ids.to_wire("task", r["id"]) for r in await world.query("SELECT id FROM tasks")}
        due = {task for task, (at, _) in self.acknowledged.items() if at <= moment}
        wrong["lost acknowledged tasks"] = len(due - stored)
        wrong["problems in the ledger"] = await ledger_problems(world)
        wrong["writes repeated without approval"] = await self._repeated(before, after[earlier:])
        await self._rota("audit", "verify")
        counts = await world.query(
            "SELECT coalesce(error->>'code', status) AS status, count(*) AS n FROM tasks GROUP BY 1"
        )
        return {
            "tasks": {row["status"]: row["n"] for row in counts},
            "acknowledged before": len(due),
            "seconds to replay": round(replayed_s, 1),
            "seconds to finish": round(finished_s, 1),
            "violations": wrong,
        }

    async def _writes(self) -> list[str]:
        answer = await self.world.scripted.http.get("/tool-calls")
        return [call["key"] for call in answer.json() if call["tool"] == "send"]

    async def _repeated(self, before: list[str], after: list[str]) -> int:
        """Writes of the old and the restored life together, without those that a person decided."""
        rows = await self.world.query("SELECT DISTINCT task_id FROM reviews")
        decided = {row["task_id"].hex for row in rows}
        made = Counter(before) + Counter(after)
        return sum(
            count > max(1, before.count(key)) and key.partition("-")[0] not in decided
            for key, count in made.items()
        )

    async def _hold(self, erased: Person, revoked: Person, cancelled: str) -> dict[str, Any]:
        statuses = [(await person.get("/api/tasks")).status_code for person in (erased, revoked)]
        rows = await self.world.query(
            "SELECT status FROM tasks WHERE id = $1", ids.from_wire("task", cancelled)
        )
        return {
            "erased and revoked": statuses,
            "cancelled": [row["status"] for row in rows],
        }

    async def _rota(
        self, *arguments: str, command: tuple[str, ...] = ("admin",), code: int = 0
    ) -> str:
        variables = {**self.world.variables(None)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rota.cli",
            *command,
            *arguments,
            env={**os.environ, **variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(120):
            output, _ = await process.communicate()
        assert process.returncode == code, output.decode()
        return output.decode()

    @property
    def holds(self) -> bool:
        return all(
            not any(each["violations"].values())
            and each["erased and revoked"] == [401, 401]
            and each["cancelled"] in ([], ["CANCELLED"])
            for each in self.results
        )


async def restores(
    stack: Stack, folder: Path, *, tasks: int, kills: int, moments: int, seed: int
) -> Restores:
    recovery = await Recovery.start(stack)
    async with World.start(stack, "restore") as world:
        found = Restores(world, recovery, folder, tasks, kills, moments, random.Random(seed))
        await found.run()
        return found


async def main(tasks: int, kills: int, moments: int, seed: int) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as files:
        async with Stack(Path(data), components=PARTS) as stack:
            found = await restores(
                stack, Path(files), tasks=tasks, kills=kills, moments=moments, seed=seed
            )
    write_report("restores", {"seed": seed, "kills": kills, "moments": found.results})
    return 0 if found.holds else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=240)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--moments", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    raise SystemExit(asyncio.run(main(o.tasks, o.kills, o.moments, o.seed)))
