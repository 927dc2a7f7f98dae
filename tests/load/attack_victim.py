"""The other account during an attack: what it does, and how long that takes."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from typing import Any
from uuid import UUID

from rota.platform import ids
from tests.load.raw_http import RawClient, request
from tests.load.stalls import Stalls
from tests.load.statements import BODY
from tests.mcp.conftest import connect
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person, Service
from tests.tasks.world import create, newcomer

INTERVAL_S = 0.015
RUN_INTERVAL_S = 0.5
# A request without a response counts as one that took this long.
DEADLINE_S = 30.0
# Phases are this many times as long, so that there are as many samples of each kind.
LONGER = {None: 1, "tools": 2, "names": 2, "runs": 9}

# Seconds, by kind.
Samples = dict[str, list[float]]
# The kind, when it began, and the seconds that it took.
Timing = tuple[str, float, float]


@dataclass(frozen=True)
class Operation:
    kind: str
    data: bytes
    status: int


@dataclass
class Victim:
    service: Service
    person: Person
    operations: Sequence[Operation]
    longer: int
    # The input of a run, if there are runs.
    script: str | None
    stalls: Stalls
    client: RawClient = field(init=False)
    # What was left out because the machine itself was slow, of all that was measured.
    left_out: int = 0
    measured: int = 0

    def __post_init__(self) -> None:
        self.client = RawClient(self.service.settings.port)

    @classmethod
    async def of(
        cls,
        service: Service,
        scripted: Scripted,
        tools_url: str,
        beside: str | None,
        stalls: Stalls,
    ) -> "Victim":
        person = await newcomer(service)
        tasks = [await create(person, **BODY) for _ in range(20)]
        server = await connect(person, tools_url)

        def send(kind: str, status: int, method: str, path: str, body: Any = None) -> Operation:
            return Operation(kind, request(method, path, person.token, body), status)

        operations = [
            send("requests", 200, "GET", "/api/me"),
            send("requests", 200, "GET", f"/api/tasks/{tasks[0]['id']}"),
            send("requests", 200, "GET", "/api/tasks?limit=20"),
            send("requests", 201, "POST", "/api/tasks", BODY),
        ]
        if beside == "tools":
            call = {"tool": "add", "arguments": {"a": 1, "b": 2}}
            other = send("tools", 200, "POST", f"/api/mcp/{server['id']}/invoke", call)
            operations = [each for request_ in operations for each in (request_, other)]
        if beside == "names":
            # The server answers, but has no tools at this path. The name is looked up every time.
            url = tools_url.replace("127.0.0.1", "other.test").replace("/mcp", "/nothing")
            other = send("names", 400, "POST", "/api/mcp", {"name": "none", "url": url})
            operations = [each for request_ in operations for each in (request_, other)]
        script = None
        if beside == "runs":
            turn = calls(("peer__add", {"a": 1, "b": 2}))
            script = await scripted.script(turn, says("Done."))
        return cls(service, person, operations, LONGER[beside], script, stalls)

    async def warm_up(self) -> None:
        await self.measure(1.5 / self.longer, {}, Counter())

    async def measure(self, seconds: float, into: Samples, failures: Counter[str]) -> None:
        """Adds the times of what is started within these seconds, longer if there are runs."""
        seconds *= self.longer
        timings: list[Timing] = []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_all(seconds, timings, failures))
            if self.script is not None:
                tasks.create_task(self._run_all(seconds, timings, failures))
        await self.stalls.seen(time.perf_counter())
        for kind, began, took_s in timings:
            self.measured += 1
            if self.stalls.covers(began):
                self.left_out += 1
            else:
                into.setdefault(kind, []).append(took_s)

    async def _send_all(
        self, seconds: float, timings: list[Timing], failures: Counter[str]
    ) -> None:
        """Sends at fixed times, whether or not earlier requests have a response."""
        operations = cycle(self.operations)

        async def one() -> None:
            operation = next(operations)
            began = time.perf_counter()
            took_s = await self._send(operation.data, operation.status, failures)
            timings.append((operation.kind, began, took_s))

        await _every(INTERVAL_S, seconds, one)

    async def _send(
        self,
        data: bytes,
        status: int,
        failures: Counter[str],
        keep: Callable[[Any], None] = lambda _: None,
    ) -> float:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(DEADLINE_S):
                response = await self.client.send(data)
        except (OSError, asyncio.IncompleteReadError) as error:
            failures[type(error).__name__] += 1
            return DEADLINE_S
        took_s = time.perf_counter() - started
        if response.status == status:
            keep(response)
        else:
            failures[response.label] += 1
        return took_s

    async def _run_all(self, seconds: float, timings: list[Timing], failures: Counter[str]) -> None:
        """Starts runs at fixed times. Their times are from the database."""
        body = {"name": "A run", "agent": "assistant", "input": f"Please. {self.script}"}
        data = request("POST", "/api/tasks", self.person.token, body)
        began: dict[UUID, float] = {}

        def keep(response: Any) -> None:
            task_id = ids.from_wire("task", response.json()["task"]["id"])
            assert task_id is not None
            began[task_id] = time.perf_counter()

        async def one() -> None:
            await self._send(data, 201, failures, keep)

        await _every(RUN_INTERVAL_S, seconds, one)
        loop = asyncio.get_running_loop()
        ends = loop.time() + DEADLINE_S
        async with self.service.owner() as owner:
            while True:
                rows = await owner.fetch(
                    "SELECT id, status, created_at, finished_at FROM tasks WHERE id = ANY ($1)",
                    list(began),
                )
                if all(row["finished_at"] for row in rows) or loop.time() > ends:
                    break
                await asyncio.sleep(0.2)
        for row in rows:
            if row["status"] != "COMPLETED":
                failures[f"run {row['status']}"] += 1
            took = (row["finished_at"] or datetime.now(UTC)) - row["created_at"]
            timings.append(("runs", began[row["id"]], took.total_seconds()))


async def _every(interval_s: float, seconds: float, begin: Callable[[], Any]) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(round(seconds / interval_s)):
            await asyncio.sleep(start + number * interval_s - loop.time())
            tasks.create_task(begin())
