"""Pauses a worker with SIGSTOP before and after every commit of a run, and resumes it later.

    python -m tests.chaos.pauses --times 10

Temporal takes the silent worker for dead, and another one completes the run. Then the first one
continues where it was, beside its successor. It must not change the run: no write is made twice, no
call that a person rejected is made, and no answer is charged twice.
"""

import argparse
import asyncio
import os
import signal
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.boundaries import BOUNDARIES, Boundary, Lane, lanes, violations_of
from tests.chaos.world import PARTS, write_report
from tests.runs.runner import until

PAUSES = [boundary for boundary in BOUNDARIES if boundary.at == "slice"]
# A worker that is paused inside a transaction keeps the account locked until PostgreSQL ends it.
DEADLINE_S = 120


async def pause_at(lane: Lane, boundary: Boundary, *, approve: bool) -> None:
    world, person = lane.world, lane.person
    script = await world.six_steps()
    file = lane.kill.with_suffix(".paused")
    lane.select(boundary, signal.SIGSTOP)
    began = time.monotonic()
    task_id = await world.create(person, "writer", script)
    lane.tasks.append(task_id)

    async def paused() -> int:
        return int(file.read_text() or 0) if file.exists() else 0

    pid = await until(paused, deadline_s=DEADLINE_S)
    file.unlink()
    try:
        if boundary.needs_decision:
            await world.until(person, task_id, "WAITING_APPROVAL", deadline_s=DEADLINE_S)
            await lane.decide(task_id, approve=approve)
        await world.until(person, task_id, "COMPLETED", "FAILED", deadline_s=DEADLINE_S)
        os.kill(pid, signal.SIGCONT)
        # The resumed worker continues with the run while both work on another task.
        other = await world.create(person, "writer", await world.six_steps())
        lane.tasks.append(other)
        await world.until(person, other, "COMPLETED", deadline_s=DEADLINE_S)
        task = await world.task(person, task_id)
        assert task["status"] == "COMPLETED", (boundary, task["error"])
        await lane.check(boundary, script, task, approve=approve)
    finally:
        os.kill(pid, signal.SIGKILL)
    lane.seconds.setdefault(boundary, []).append(time.monotonic() - began)
    lane.died += 1


async def pause_at_every_boundary(stack: Stack, times: int = 1) -> list[Lane]:
    """Pauses a worker at every boundary this many times. The lanes share the work."""
    waiting = [(b, number) for number in range(times) for b in PAUSES]
    async with lanes(stack, "pause") as found:

        async def work_through(lane: Lane) -> None:
            while waiting:
                boundary, number = waiting.pop(0)
                # A person approves one unknown write and rejects the next.
                approve = (number + (boundary.when == "after")) % 2 == 0
                await pause_at(lane, boundary, approve=approve)

        await asyncio.gather(*map(work_through, found))
        for lane in found:
            wrong = await violations_of(lane)
            assert not any(wrong.values()), wrong
    return found


async def main(times: int) -> None:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS, durable=False) as stack:
            found = await pause_at_every_boundary(stack, times)
    table = Table(title=f"A worker is paused at every commit of a run, {times} times each")
    table.add_column("paused")
    table.add_column("runs", justify="right")
    for boundary in PAUSES:
        runs = sum(len(lane.seconds.get(boundary, [])) for lane in found)
        table.add_row(boundary.meaning, str(runs))
    Console(width=100).print(table)
    write_report(
        "pauses",
        {
            "pauses": sum(lane.died for lane in found),
            "asked": sum(lane.asked for lane in found),
            "model calls not explained by a pause": sum(lane.repeated for lane in found),
        },
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    asyncio.run(main(parser.parse_args().times))
