"""No workers for a while, and many waiting tasks.

python -m tests.chaos.endurance
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from rota.dev.processes import Component
from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.invariants import violations
from tests.chaos.world import PARTS, World, start_again, write_report
from tests.runs.scripted import calls, says
from tests.service import Person


async def without_workers(stack: Stack, away_s: float, tasks: int = 20) -> dict[str, Any]:
    """People create, approve and cancel tasks while no worker runs. Then the work continues."""
    async with World.start(stack, "endurance_away") as world:
        person = await world.newcomer()
        script = await world.six_steps()
        waiting = [await world.create(person, "careful", script) for _ in range(tasks)]
        for task_id in waiting:
            await world.until(person, task_id, "WAITING_APPROVAL")
        await asyncio.gather(*[worker.kill() for worker in world.workers])
        began = time.monotonic()
        fresh: list[str] = []
        slowest_s = 0.0
        for number in range(tasks):
            asked = time.monotonic()
            fresh.append(await world.create(person, "writer", script))
            await _ok(person, "POST", f"/api/tasks/{waiting[number]}/approve")
            if number % 4 == 0:
                body = {"status": "CANCELLED"}
                await _ok(person, "PATCH", f"/api/tasks/{fresh[number]}", json=body)
            slowest_s = max(slowest_s, time.monotonic() - asked)
            await asyncio.sleep(max(0, began + away_s * (number + 1) / tasks - time.monotonic()))
        before = await world.counts()
        back = time.monotonic()
        await asyncio.gather(*map(start_again, world.workers))
        counts = await world.until_terminal(60)
        resumed_s = time.monotonic() - back
        wrong = await _violations(world, [*waiting, *fresh])
        cancelled = len(range(0, tasks, 4))
        assert counts == {"COMPLETED": 2 * tasks - cancelled, "CANCELLED": cancelled}, counts
        return {
            "seconds without workers": away_s,
            "tasks by status before the workers return": before,
            "slowest create, approve and cancel together, ms": round(slowest_s * 1000),
            "seconds until everything is done": round(resumed_s, 1),
            "violations": wrong,
        }


async def waiting(stack: Stack, tasks: int = 200) -> dict[str, Any]:
    """Waiting tasks: the memory they need in a worker, and that they survive a restart."""
    async with World.start(stack, "endurance_waiting", workers=1) as world:
        person = await world.newcomer()
        script = await world.scripted.script(
            calls(("desk__send", {"ref": "waiting"})), says("Done.")
        )
        # Warm-up: the worker loads what it needs for its first tasks.
        for _ in range(3):
            task_id = await world.create(person, "careful", script)
            await world.until(person, task_id, "WAITING_APPROVAL")
            await _ok(person, "POST", f"/api/tasks/{task_id}/reject")
        empty_mb = _rss_mb(world.workers[0])
        turn = asyncio.Semaphore(8)

        async def create() -> str:
            async with turn:
                return await world.create(person, "careful", script)

        ids = await asyncio.gather(*[create() for _ in range(tasks)])
        await _until_status(world, "WAITING_APPROVAL", tasks)
        full_mb = _rss_mb(world.workers[0])
        await world.restart_everything()
        # When a new task is done, the worker has caught up.
        task_id = await world.create(person, "writer", script)
        await world.until(person, task_id, "COMPLETED")
        restarted_mb = _rss_mb(world.workers[0])
        assert (await world.counts())["WAITING_APPROVAL"] == tasks
        began = time.monotonic()

        async def decide(number: int, waits: str) -> None:
            verb = "reject" if number % 4 == 0 else "approve"
            async with turn:
                await world.request_until_response(person, "POST", f"/api/tasks/{waits}/{verb}")

        await asyncio.gather(*[decide(number, waits) for number, waits in enumerate(ids)])
        counts = await world.until_terminal(120)
        rejected = len(range(0, tasks, 4))
        assert counts == {"COMPLETED": tasks - rejected + 1, "CANCELLED": rejected + 3}, counts
        rows = await world.query("SELECT id FROM tasks")
        return {
            "waiting": tasks,
            "worker's memory before, MB": empty_mb,
            "with them waiting, MB": full_mb,
            "after a restart of everything, with them waiting, MB": restarted_mb,
            "seconds for all decisions to take effect": round(time.monotonic() - began, 1),
            "violations": await _violations(world, [f"task_{row['id'].hex}" for row in rows]),
        }


async def _until_status(world: World, status: str, count: int) -> None:
    async with asyncio.timeout(120):
        while (await world.counts()).get(status, 0) < count:
            await asyncio.sleep(0.2)


async def _ok(person: Person, method: str, path: str, **options: Any) -> None:
    answer = await person.request(method, path, **options)
    assert answer.status_code == 200, answer.text


async def _violations(world: World, acknowledged: list[str]) -> dict[str, int]:
    async with asyncio.timeout(60):
        while (wrong := await violations(world, acknowledged))["instructions still in the outbox"]:
            await asyncio.sleep(0.2)
    assert not any(wrong.values()), wrong
    return {name: count for name, count in wrong.items() if count}


def _rss_mb(component: Component) -> float:
    """The memory of the component, which is the largest process under its guard."""
    assert component._child is not None
    below = psutil.Process(component._child._process.pid).children(recursive=True)
    return round(max(process.memory_info().rss for process in below) / 2**20, 1)


async def main(away_s: float, tasks: int) -> None:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS, durable=False) as stack:
            found = {
                "without workers": await without_workers(stack, away_s),
                "waiting": await waiting(stack, tasks),
            }
    for name, figures in found.items():
        print(name, figures)
        write_report(name, figures)


if __name__ == "__main__":
    away = float(sys.argv[1]) if len(sys.argv) > 1 else 120
    asyncio.run(main(away, 200))
