"""What one request and one task cost each part: `make scale`, first part.

    python -m tests.load.costs --output docs/scale/costs.json

One `serve` and one `worker` run on a stack of their own. The costs are processor time and bytes,
not elapsed time, so that a busy machine disturbs them little. The capacity model
(tests/load/model.py) is built from this file only.
"""

import argparse
import asyncio
import os
import platform
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.telemetry import configure_logging
from tests.load.fleet import OTHERS, PARTS, STACK_PARTS, Fleet, Metered, write_json
from tests.load.points import AT_ONCE, POINTS
from tests.load.points import run as measure_point
from tests.load.raw_http import request
from tests.load.statements import BODY
from tests.load.tool_server_costs import checks
from tests.runs.scripted import Turn, calls, says
from tests.service import Person

DEFAULT = Path("docs/scale/costs.json")
ACCOUNTS = 32
IDLE_S = 20
# Model calls and tool calls in the longer tasks, from whose cost that of one call follows.
FURTHER_CALLS, TOOL_CALLS = 10, 8
# Rota answers a call to an unknown tool itself, so the next model call follows at once.
AGAIN = calls(("absent", {}))

Work = Callable[[], Awaitable[None]]


class Measurement:
    def __init__(self, fleet: Fleet, people: list[Person], scale: float) -> None:
        self.fleet = fleet
        self.people = people
        self.scale = scale
        self.found: dict[str, Metered] = {}

    def size(self, count: int) -> int:
        return max(AT_ONCE, round(count * self.scale))

    async def operation(
        self, name: str, count: int, work: Callable[[int], Awaitable[None]]
    ) -> None:
        """Warms up with a tenth of the operations, and measures the rest."""
        count = self.size(count)
        warm_up = max(AT_ONCE, count // 10)
        before = await self.fleet.compact()
        await work(warm_up)
        async with self.fleet.metered(count) as result:
            await work(count)
        stored = (await self.fleet.compact() - before) * count / (count + warm_up)
        self.found[name] = replace(result[0], stored_bytes=stored)
        print(f"{name}: {self.found[name].cpu_ms():.2f} ms", flush=True)

    async def requests(self) -> None:
        people, fleet = self.people, self.fleet
        tasks = []
        for person in people:
            response = await person.post("/api/tasks", BODY)
            tasks.append(response.json()["task"]["id"])
        pairs = list(zip(people, tasks, strict=True))
        wanted: dict[str, tuple[list[bytes], int]] = {
            "me": ([request("GET", "/api/me", p.token) for p in people], 200),
            "fetch": ([request("GET", f"/api/tasks/{t}", p.token) for p, t in pairs], 200),
            "create": ([request("POST", "/api/tasks", p.token, BODY) for p in people], 201),
            "list": ([request("GET", "/api/tasks?limit=20", p.token) for p in people], 200),
        }
        for name, (sent, status) in wanted.items():

            async def send(count: int, sent: list[bytes] = sent, status: int = status) -> None:
                await fleet.send(sent, count, AT_ONCE, status)

            await self.operation(name, 1_500, send)

    async def tasks(self) -> None:
        await self._task("task", 400, says("Done."))
        await self._task(
            "task with 10 further model calls", 60, *[AGAIN] * FURTHER_CALLS, says("Done.")
        )
        tools = calls(*[("desk__lookup", {"ref": "scale"})] * TOOL_CALLS)
        await self._task("task with 8 tool calls", 80, tools, says("Done."))

    async def _task(self, name: str, count: int, *turns: Turn) -> None:
        script = await self.fleet.scripted.script(*turns)

        async def run(count: int) -> None:
            await self.fleet.tasks(self.people, script, count, AT_ONCE)

        await self.operation(name, count, run)

    async def reviews(self) -> None:
        """A task whose output a person approves."""
        script = await self.fleet.scripted.script(says("Done."))

        async def run(count: int) -> None:
            accounts = [person.user_id for person in self.people]
            target = count + await self.fleet.completed(accounts)
            await wait_for_people(self.fleet, self.people, script, count)
            rows = await self.fleet.query(
                "SELECT account_id, id FROM tasks WHERE status = 'WAITING_APPROVAL'"
            )
            tokens = {person.user_id: person.token for person in self.people}
            sent = [
                request(
                    "POST",
                    f"/api/tasks/{ids.to_wire('task', row['id'])}/approve",
                    tokens[row["account_id"]],
                    {},
                )
                for row in rows
            ]
            await self.fleet.send(sent, len(sent), AT_ONCE, 200)
            await self.fleet.until_completed(accounts, target)

        await self.operation("approved task", 150, run)

    async def idle(self) -> dict[str, Any]:
        """What the parts use each second without work, and with tasks that wait for people."""
        script = await self.fleet.scripted.script(says("Done."))
        empty = await self._idle()
        waiting = self.size(500)
        async with self.fleet.metered(waiting) as result:
            await wait_for_people(self.fleet, self.people, script, waiting)
        with_waiting = await self._idle()
        return {
            "cpuMsPerSecond": empty,
            "waitingTasks": waiting,
            "cpuMsPerSecondWithWaitingTasks": with_waiting,
            "waitingTask": result[0].summary(),
        }

    async def _idle(self) -> dict[str, float]:
        # The caches of the work before have been written.
        await asyncio.sleep(3)
        async with self.fleet.metered(1) as result:
            await asyncio.sleep(max(3, IDLE_S * min(1, self.scale)))
        measured = result[0]
        return {part: round(measured.cpu_ms(part) / measured.seconds, 2) for part in PARTS}


async def wait_for_people(fleet: Fleet, people: list[Person], script: str, count: int) -> None:
    """Creates tasks whose output needs an approval, and returns when all wait for it."""
    waiting = "SELECT sum(waiting_approval)::int FROM account_heads WHERE account_id = ANY($1)"
    accounts = [person.user_id for person in people]
    body = {"name": "A task", "agent": "editor", "input": f"Please. {script}"}
    sent = [request("POST", "/api/tasks", person.token, body) for person in people]
    async with asyncio.timeout(300), fleet.service.owner() as connection:
        target = count + await connection.fetchval(waiting, accounts)
        await fleet.send(sent, count, AT_ONCE, 201)
        while target > await connection.fetchval(waiting, accounts):
            await asyncio.sleep(0.1)


async def history_events(fleet: Fleet) -> int:
    """The events in Temporal's history of a task with one model call."""
    [row] = await fleet.query(
        "SELECT id, run FROM tasks WHERE status = 'COMPLETED' AND steps = 1 AND hosted LIMIT 1"
    )
    client = await fleet.temporal()
    task_id = ids.to_wire("task", row["id"])
    found = await client.get_workflow_handle(f"run/{task_id}/{row['run']}").describe()
    return int(found.raw_description.workflow_execution_info.history_length)


def per_call(found: dict[str, Metered]) -> dict[str, Any]:
    """The cost of one more model call and of one tool call, as differences."""
    one = found["task"].summary()
    many = found["task with 10 further model calls"].summary()
    tools = found["task with 8 tool calls"].summary()
    model_call = _apply(lambda m, o: (m - o) / FURTHER_CALLS, many, one)
    # That task also makes a second model call.
    more = _apply(lambda t, o: t - o, tools, one)
    tool_call = _apply(lambda t, m: (t - m) / TOOL_CALLS, more, model_call)
    return {"further model call": model_call, "tool call": tool_call}


def _apply(how: Callable[[float, float], float], left: Any, right: Any) -> dict[str, Any]:
    names = ("walBytes", "storedBytes", "transactionIds", "redisCommands", "temporalBytes")
    return {
        "cpuMs": {
            part: round(max(0.0, how(left["cpuMs"][part], right["cpuMs"][part])), 3)
            for part in (*PARTS, OTHERS)
        },
        **{name: round(max(0.0, how(left[name], right[name])), 2) for name in names},
    }


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processors": os.cpu_count(),
        "processor": names[0] if names else platform.machine(),
        "memoryGB": round(pages / 2**30),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


async def measured(scale: float) -> dict[str, Any]:
    # The tools come from the database, as those of tool servers do.
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    async with AsyncExitStack() as exits:
        data = exits.enter_context(tempfile.TemporaryDirectory())
        stack = await exits.enter_async_context(Stack(Path(data), components=STACK_PARTS))
        fleet = await exits.enter_async_context(
            Fleet.of(stack, "costs", egress_allow=("127.0.0.0/8",))
        )
        people = await fleet.people(ACCOUNTS)
        run = Measurement(fleet, people, scale)
        await run.requests()
        await run.tasks()
        points = {each.name: await measure_point(fleet, each, scale) for each in POINTS}
        await run.reviews()
        run.found["check of a tool server"] = await checks(fleet, people, 3)
        idle = await run.idle()
        [version] = await fleet.query("SELECT current_setting('server_version') AS version")
        return {
            "measuredAt": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": machine() | {"postgres": version["version"]},
            "operations": {name: each.summary() for name, each in run.found.items()}
            | per_call(run.found),
            # Not part of the costs: tests/load/model_check.py compares predictions with them.
            "checks": {name: each.summary() for name, each in points.items()},
            "idle": idle,
            "historyEvents": await history_events(fleet),
            "updates": await fleet.updates(),
            "memoryBytes": {part: memory(pids) for part, pids in fleet.roots().items()},
        }


def memory(roots: list[int]) -> int:
    """The proportional memory of the processes of a part."""
    total, left = 0, list(roots)
    while left:
        pid = left.pop()
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            left += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total * 1024


def report(costs: dict[str, Any]) -> None:
    table = Table(title="Processor time of one operation (ms), and what it writes (bytes)")
    for column in ("operation", *PARTS, "all", "WAL", "stored", "ids"):
        table.add_column(column, justify="left" if column == "operation" else "right")
    for name, each in costs["operations"].items():
        cpu = [each["cpuMs"][part] for part in PARTS]
        table.add_row(
            name,
            *[f"{value:.2f}" for value in cpu],
            f"{sum(cpu):.2f}",
            f"{each['walBytes']:,.0f}",
            f"{each['storedBytes']:,.0f}",
            f"{each['transactionIds']:g}",
        )
    Console(width=130).print(table)


async def main(output: Path, scale: float) -> int:
    configure_logging("WARNING", "console")
    costs = await measured(scale)
    report(costs)
    write_json(output, costs)
    print(f"Written to {output}.")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DEFAULT)
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the operations")
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.output, options.scale)))
