"""People who use the service all the time. Each request is tried again once, as clients do."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from tests.runs.runner import shown
from tests.runs.scripted import Scripted, calls, delegates, says
from tests.service import Person
from tests.upgrade.fleet import Installation

RETRY_AFTER_S = 0.5
POLL_S = 0.25
READ_EVERY_S = 0.2
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
READS = (
    "/api/tasks",
    "/api/me",
    "/api/approvals",
    "/api/agents",
    "/api/credits/balance",
    "/api/credits/transactions",
    "/api/usage",
    "/api/audit",
)


@dataclass
class Figures:
    requests: int = 0
    # What the first attempts failed with, and how many of them the second one healed.
    first_failures: Counter[str] = field(default_factory=Counter)
    healed: int = 0
    # Failed twice.
    failed: list[str] = field(default_factory=list)
    # Seconds of each request, by phase.
    seconds: dict[str, list[float]] = field(default_factory=dict)
    streams: int = 0
    stream_events: int = 0
    repeated_creations: int = 0


class Load:
    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.figures = Figures()
        self.phase = "start"
        self.people: list[Person] = []
        # Task ID and whose it is.
        self.tasks: dict[str, Person] = {}
        self.statuses: Counter[str] = Counter()
        # What is wrong besides failed requests.
        self.wrong: list[str] = []
        self._last_seen: dict[str, int] = {}
        # Tasks that wait for a decision, by phase.
        self._waiting: list[tuple[Person, str]] = []

    @property
    def scripted(self) -> Scripted:
        return self.installation.scripted

    async def request(
        self, person: Person, method: str, path: str, body: Any = None, key: str | None = None
    ) -> httpx.Response | None:
        """None if it failed twice."""
        headers = {"Idempotency-Key": key or uuid4().hex} if method != "GET" else {}
        began = time.monotonic()
        self.figures.requests += 1
        problem = ""
        for attempt in (1, 2):
            try:
                answer = await person.request(method, path, json=body, headers=headers)
                problem = f"{answer.status_code} {answer.text[:200]}"
                if answer.status_code < 500 and answer.status_code != 429:
                    self.figures.healed += attempt == 2
                    took = time.monotonic() - began
                    self.figures.seconds.setdefault(self.phase, []).append(took)
                    return answer
            except httpx.TransportError as error:
                problem = repr(error)
            if attempt == 1:
                self.figures.first_failures[f"{self.phase}: {problem[:60]}"] += 1
                await asyncio.sleep(RETRY_AFTER_S)
        self.figures.failed.append(f"{self.phase}: {method} {path}: {problem}")
        return None

    async def run(self, at_once: int, over: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(self._read(person, over))
                group.create_task(self._listen(person, over))
                for number in range(at_once):
                    group.create_task(self._work(person, number, over))

    async def _work(self, person: Person, number: int, over: asyncio.Event) -> None:
        kinds: list[Callable[[], Any]] = [self._six_steps, self._approved, self._delegated]
        while not over.is_set():
            number += 1
            agent, script = await kinds[number % 3]()
            if task_id := await self.create(person, agent, script):
                await self.finish(person, task_id)
            else:
                await asyncio.sleep(POLL_S)

    async def _six_steps(self) -> tuple[str, str]:
        return "writer", await self.installation.six_steps(delay_s=0.3)

    async def _approved(self) -> tuple[str, str]:
        ref = f"r{uuid4().hex[:12]}"
        wanted = "desk__send", {"ref": ref, "text": "hello"}
        script = await self.scripted.script(calls(wanted), says("Sent."), name=ref)
        return "careful", script

    async def _delegated(self) -> tuple[str, str]:
        subtask = await self.scripted.script(says("A part.", delayS=0.3))
        script = await self.scripted.script(calls(delegates("writer", subtask)), says("Done."))
        return "director", script

    async def create(self, person: Person, agent: str, script: str) -> str | None:
        key = uuid4().hex
        body = {"name": "A task", "agent": agent, "input": f"Please. {script}"}
        answer = await self.request(person, "POST", "/api/tasks", body, key)
        if answer is None:
            return None
        if answer.status_code != 201:
            self.wrong.append(f"POST /api/tasks: {answer.status_code} {answer.text}")
            return None
        task_id: str = answer.json()["task"]["id"]
        self.tasks[task_id] = person
        if len(self.tasks) % 5 == 0:
            # The other process can be of the other release.
            again = await self.request(person, "POST", "/api/tasks", body, key)
            self.figures.repeated_creations += 1
            if again is not None and again.json().get("task", {}).get("id") != task_id:
                self.wrong.append(f"a repeated request was not recognised: {again.text[:300]}")
        return task_id

    async def finish(self, person: Person, task_id: str, deadline_s: float = 180) -> None:
        """Waits for the end of the task, and approves what it asks for."""
        try:
            async with asyncio.timeout(deadline_s):
                while (status := await self.status(person, task_id)) not in ENDED:
                    if status == "WAITING_APPROVAL":
                        await self.approve(person, task_id)
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            self.wrong.append(f"{task_id} is {status} after {deadline_s} s, in {self.phase}")
            return
        self.statuses[status] += 1
        if status != "COMPLETED":
            self.wrong.append(f"{task_id} is {status}, in {self.phase}")

    async def status(self, person: Person, task_id: str) -> str:
        answer = await self.request(person, "GET", f"/api/tasks/{task_id}")
        return answer.json()["task"]["status"] if answer is not None else "unknown"

    async def approve(self, person: Person, task_id: str) -> None:
        answer = await self.request(person, "GET", f"/api/tasks/{task_id}/review")
        if answer is None or answer.status_code != 200:
            return
        body = {"review": shown(answer.json()["review"])}
        decided = await self.request(person, "POST", f"/api/tasks/{task_id}/approve", body)
        # 409: the review was decided or replaced meanwhile, which the next look shows.
        if decided is not None and decided.status_code not in (200, 409):
            self.wrong.append(f"approve: {decided.status_code} {decided.text[:300]}")

    async def leave_waiting(self, count: int) -> None:
        """New tasks that wait for a decision until the next phase. Approves those of the last."""
        before, self._waiting = self._waiting, []
        for number in range(count):
            person = self.people[number % len(self.people)]
            if task_id := await self.create(person, *await self._approved()):
                self._waiting.append((person, task_id))
        await asyncio.gather(*[self.finish(person, task_id) for person, task_id in before])

    async def _read(self, person: Person, over: asyncio.Event) -> None:
        number = 0
        while not over.is_set():
            path = READS[number % len(READS)]
            number += 1
            answer = await self.request(person, "GET", path)
            if answer is not None and answer.status_code != 200:
                self.wrong.append(f"GET {path}: {answer.status_code} {answer.text[:300]}")
            await asyncio.sleep(READ_EVERY_S)

    async def _listen(self, person: Person, over: asyncio.Event) -> None:
        """Follows the events of the account, and continues after each interruption."""
        name = str(person.user_id)
        self._last_seen[name] = 0
        following = asyncio.create_task(self._follow(person, name))
        await over.wait()
        following.cancel()

    async def _follow(self, person: Person, name: str) -> None:
        failures = 0
        while True:
            headers = {**person.auth, "Last-Event-ID": str(self._last_seen[name])}
            headers["Accept"] = "text/event-stream"
            try:
                http = self.installation.http
                async with http.stream("GET", "/api/events", headers=headers) as answer:
                    if answer.status_code != 200:
                        raise httpx.ReadError(f"status {answer.status_code}")
                    self.figures.streams += 1
                    failures = 0
                    async for line in answer.aiter_lines():
                        if line.startswith("data:"):
                            self._saw(name, json.loads(line[5:]))
            except httpx.TransportError as error:
                failures += 1
                if failures > 2:
                    self.figures.failed.append(f"{self.phase}: stream: {error!r}")
            await asyncio.sleep(RETRY_AFTER_S)

    def _saw(self, name: str, event: dict[str, Any]) -> None:
        # Live text has no number.
        if "sequence" not in event:
            return
        expected = self._last_seen[name] + 1
        if event["sequence"] != expected:
            self.wrong.append(f"event {event['sequence']} instead of {expected}, in {self.phase}")
        self._last_seen[name] = event["sequence"]
        self.figures.stream_events += 1
