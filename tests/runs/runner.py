"""A service with a worker process and the scripted model, and functions to observe them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    RegisterNamespaceRequest,
)
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError

from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.platform.settings import Settings
from tests.forks import Fork, forked
from tests.runs.scripted import Scripted
from tests.service import Person, Service, environment, free_port
from tests.tasks.world import create, newcomer, patch, uuid_of

CATALOG = Path(__file__).parent / "catalog"
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
# The heartbeat timeout of tests that kill workers and wait until another one takes over.
KILLED_HEARTBEAT_S = 6.0

T = TypeVar("T")


async def until(
    look: Callable[[], Awaitable[T]], holds: Callable[[T], object] = bool, deadline_s: float = 120
) -> T:
    """Calls `look` until `holds` is true for its result. Fails after the deadline."""
    seen: T | None = None
    pause_s = 0.02
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                seen = await look()
                if holds(seen):
                    return seen
                await asyncio.sleep(pause_s)
                # What takes long is looked for less often, because looking takes processor time.
                pause_s = min(pause_s * 1.3, 0.15)
    except TimeoutError:
        raise AssertionError(f"not within {deadline_s} s; last result: {seen!r}") from None


def shown(review: dict[str, Any]) -> dict[str, Any]:
    """What a decision names: the review that a person looked at."""
    return {"number": review["number"], "digest": review["digest"]}


class Worker:
    """A worker process that can be killed."""

    def __init__(self, settings: Settings, models: str, tools_url: str, log: Path) -> None:
        self.settings = settings
        self.log = log
        self._variables = {
            # Empty settings keep their defaults.
            **{k: v for k, v in environment(settings).items() if v not in ("[]", "{}", "()")},
            "ROTA_MODELS": models,
            "TEST_TOOLS_URL": tools_url,
        }
        self._process: Fork | None = None

    async def start(self) -> None:
        size = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            process = await forked(
                "tests.runs.worker_main",
                env=os.environ | self._variables,
                stdout=output.fileno(),
                stderr=output.fileno(),
            )
        self._process = process
        # On a busy machine, the imports of a worker alone can take more than a minute.
        async with asyncio.timeout(180):
            while b"worker_ready" not in self.log.read_bytes()[size:]:
                assert process.returncode is None, self.log.read_text()[size:]
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kills the process without a graceful shutdown."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        await self._process.wait()


class Runner:
    def __init__(
        self, service: Service, worker: Worker, scripted: Scripted, temporal: Client
    ) -> None:
        self.service = service
        self.worker = worker
        self.scripted = scripted
        self.temporal = temporal

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        stack: Stack,
        scripted: Scripted,
        name: str,
        log: Path,
        *,
        variant: str = "a",
        models: str | None = None,
        **changes: Any,
    ) -> AsyncIterator["Runner"]:
        """Starts everything on its own database and Temporal namespace."""
        namespace = name.replace("_", "-")
        temporal = await new_namespace(stack.endpoints.temporal_address, namespace)
        settings = {
            "temporal_namespace": namespace,
            # No busy machine keeps a worker from its heartbeats for this long. Else a call would be
            # interrupted in a test that has nothing to do with that.
            "run_heartbeat_s": 60.0,
            **changes,
        }
        async with Service.start(stack, variant=variant, name=name, **settings) as service:
            await sync(service.database_url, CATALOG)
            worker = Worker(
                service.settings.model_copy(
                    update={"metrics_port": free_port(), "log_level": "INFO"}
                ),
                models or scripted.models(),
                scripted.url,
                log,
            )
            await worker.start()
            try:
                yield cls(service, worker, scripted, temporal)
            finally:
                await worker.stop()

    async def newcomer(self, tier: str = "enterprise") -> Person:
        return await newcomer(self.service, tier=tier)

    async def begin(self, person: Person, agent: str, script: str, **body: Any) -> dict[str, Any]:
        """Creates a task whose model follows a script."""
        return await create(person, agent=agent, **{"input": f"Please. {script}", **body})

    async def task(self, person: Person, task_id: str) -> dict[str, Any]:
        answer = await person.get(f"/api/tasks/{task_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["task"]
        return found

    async def until(
        self, person: Person, task: dict[str, Any], *statuses: str, deadline_s: float = 120
    ) -> dict[str, Any]:
        """The task once it has one of these states. Fails at once if it ends in another state."""

        def holds(seen: dict[str, Any]) -> bool:
            if seen["status"] in TERMINAL and seen["status"] not in statuses:
                raise AssertionError(f"status {seen['status']}: {seen['error']}")
            return seen["status"] in statuses

        return await until(lambda: self.task(person, task["id"]), holds, deadline_s)

    async def finish(
        self, person: Person, agent: str, script: str, status: str = "COMPLETED", **body: Any
    ) -> dict[str, Any]:
        """Creates a task and waits for its end."""
        task = await self.begin(person, agent, script, **body)
        return await self.until(person, task, status)

    async def review(self, person: Person, task: dict[str, Any]) -> dict[str, Any]:
        answer = await person.get(f"/api/tasks/{task['id']}/review")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["review"]
        return found

    async def approve(
        self, person: Person, task: dict[str, Any], *decisions: dict[str, Any]
    ) -> dict[str, Any]:
        """Approves everything that waits, or only the named items."""
        body: dict[str, Any] = {"review": shown(await self.review(person, task))}
        if decisions:
            body["decisions"] = list(decisions)
        answer = await person.post(f"/api/tasks/{task['id']}/approve", body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def reject(self, person: Person, task: dict[str, Any], **body: Any) -> dict[str, Any]:
        body["review"] = shown(await self.review(person, task))
        answer = await person.post(f"/api/tasks/{task['id']}/reject", body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def cancel(self, person: Person, task: dict[str, Any]) -> None:
        answer = await patch(person, task["id"], status="CANCELLED")
        assert answer.status_code == 200, answer.text

    async def retry(self, person: Person, task: dict[str, Any], start_at: str) -> None:
        answer = await person.post(f"/api/tasks/{task['id']}/retry", {"from": start_at})
        assert answer.status_code == 200, answer.text

    async def waiting(self, person: Person, task: dict[str, Any], gate: str) -> dict[str, Any]:
        """The review of a task, once it waits at this gate."""
        await self.until(person, task, "WAITING_APPROVAL")
        review = await self.review(person, task)
        assert (review["state"], review["gate"]) == ("pending", gate)
        return review

    async def child(self, person: Person, task: dict[str, Any], *statuses: str) -> dict[str, Any]:
        """The only subtask, once it exists and has one of these states."""
        found = await until(lambda: self.children(person, task), lambda seen: len(seen) == 1)
        return await self.until(person, found[0], *statuses)

    async def timeline(
        self, person: Person, task: dict[str, Any], **query: Any
    ) -> tuple[list[dict[str, Any]], int]:
        answer = await person.get(f"/api/tasks/{task['id']}/timeline", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["steps"], answer.json()["total"]

    async def children(self, person: Person, task: dict[str, Any]) -> list[dict[str, Any]]:
        """The subtasks, oldest first."""
        answer = await person.get("/api/tasks", params={"parentTaskId": task["id"]})
        return list(reversed(answer.json()["tasks"]))

    async def events(self, person: Person, task: dict[str, Any], family: str = "task") -> list[str]:
        async with self.service.owner() as connection:
            rows = await connection.fetch(
                "SELECT type FROM events WHERE account_id = $1 AND task_id = $2 "
                "AND type LIKE $3 ORDER BY sequence",
                person.user_id,
                uuid_of(task),
                f"{family}.%",
            )
        return [row["type"] for row in rows]

    async def seen(
        self,
        look: Callable[[], Awaitable[dict[str, Any]]],
        holds: Callable[[dict[str, Any]], object],
        *,
        pending: bool,
    ) -> dict[str, Any]:
        """The review, once `holds` is true for it and it is or is not pending."""
        return await until(
            look, lambda review: holds(review) and (review["state"] == "pending") == pending
        )

    async def history_ends(self, task: dict[str, Any], run: int = 1) -> None:
        """Waits until the workflow of this run has ended."""
        handle = self.temporal.get_workflow_handle(f"run/{task['id']}/{run}")

        async def ended() -> bool:
            return (await handle.describe()).close_time is not None

        await until(ended)

    async def call_continues(self, task: dict[str, Any], run: int = 1) -> None:
        """Waits until the worker knows that this task was cancelled during a model call."""

        async def known() -> bool:
            lines = self.worker.log.read_text().splitlines()
            run_id = f"run/{task['id']}/{run}"
            return any("cancelled_call_continues" in line and run_id in line for line in lines)

        await until(known)

    async def history(self, task: dict[str, Any], run: int = 1) -> WorkflowHistory:
        handle = self.temporal.get_workflow_handle(f"run/{task['id']}/{run}")
        return await handle.fetch_history()


async def new_namespace(address: str, name: str) -> Client:
    """Registers a namespace, so that workers of different tests do not share runs."""
    client = await Client.connect(address, namespace=name)
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(
            namespace=name,
            workflow_execution_retention_period=Duration(
                seconds=int(timedelta(days=1).total_seconds())
            ),
        )
    )

    async def known() -> bool:
        try:
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=name)
            )
            await client.count_workflows()
        except RPCError:
            return False
        return True

    await until(known, deadline_s=30)
    return client
