"""Two loads that the capacity model is not fitted to, to compare it with."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rota.platform import ids
from tests.load.fleet import Fleet, Metered
from tests.load.model import Load
from tests.load.raw_http import request
from tests.load.statements import BODY
from tests.runs.scripted import calls, says
from tests.service import Person

AT_ONCE = 16


@dataclass(frozen=True)
class Point:
    name: str
    load: Load
    accounts: int
    tasks: int


POINTS = (
    Point("3 model calls, 4 tool calls", Load(model_calls=3, tool_calls=4), 16, 160),
    Point(
        "1 model call, 15 requests",
        Load(requests={"me": 4, "fetch": 6, "list": 2, "create": 3}),
        48,
        240,
    ),
)


async def run(fleet: Fleet, point: Point, scale: float) -> Metered:
    people = await fleet.people(point.accounts)
    tasks = max(AT_ONCE, round(point.tasks * scale))
    tools = calls(("desk__lookup", {"ref": "one"}), ("desk__lookup", {"ref": "two"}))
    turns = [tools] * (int(point.load.model_calls) - 1) + [says("Done.")]
    script = await fleet.scripted.script(*turns)
    sent = await _mixed(fleet, people, point.load)

    async def work(tasks: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fleet.tasks(people, script, tasks, AT_ONCE))
            for requests, per_task, status in sent:
                count = round(tasks * per_task)
                group.create_task(fleet.send(requests, count, 4, status))

    warm_up = max(AT_ONCE, tasks // 5)
    before = await fleet.compact()
    await work(warm_up)
    async with fleet.metered(tasks) as result:
        await work(tasks)
    grown = await fleet.compact() - before
    return replace(result[0], stored_bytes=grown * tasks / (tasks + warm_up))


async def _mixed(
    fleet: Fleet, people: Sequence[Person], load: Load
) -> list[tuple[list[bytes], float, int]]:
    """The requests of each kind, how many for each task, and the expected status."""
    if not load.requests:
        return []
    created = [request("POST", "/api/tasks", p.token, BODY) for p in people]
    # As many tasks as a page has, so that pages are as long as in the costs.
    await fleet.send(created, 20 * len(people), AT_ONCE, 201)
    rows = await fleet.query("SELECT DISTINCT ON (account_id) account_id, id FROM tasks")
    known = {row["account_id"]: ids.to_wire("task", row["id"]) for row in rows}
    of = {
        "me": ([request("GET", "/api/me", p.token) for p in people], 200),
        "fetch": ([request("GET", f"/api/tasks/{known[p.user_id]}", p.token) for p in people], 200),
        "list": ([request("GET", "/api/tasks?limit=20", p.token) for p in people], 200),
        "create": (created, 201),
    }
    return [(of[name][0], count, of[name][1]) for name, count in load.requests.items()]
