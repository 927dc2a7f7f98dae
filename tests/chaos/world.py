"""The whole service in processes that can be killed, and clients that retry."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import httpx
from temporalio.client import Client

from rota.agents.sync import sync
from rota.dev import components
from rota.dev.processes import Component, ComponentError
from rota.dev.stack import Stack
from rota.platform.settings import Settings
from tests.runs.runner import CATALOG, new_namespace, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person, Service, environment, free_port, prepared_settings
from tests.tasks.world import newcomer

TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
PARTS = ("postgres", "redis", "temporal", "idp")
# A busy machine is slow.
READY_WITHIN_S = 90


class Api(components.Service):
    name = "api"
    ready_within_s = READY_WITHIN_S


class Worker(components.Worker):
    name = "worker-1"
    ready_within_s = READY_WITHIN_S


class SecondWorker(components.Worker):
    name = "worker-2"
    ready_within_s = READY_WITHIN_S


class World:
    WORKERS: ClassVar[Sequence[type[components.Worker]]] = (Worker, SecondWorker)

    def __init__(self, stack: Stack, scripted: Scripted, settings: Settings) -> None:
        self.stack = stack
        self.scripted = scripted
        self.settings = settings
        command = [sys.executable, "-m"]
        self.api = Api(
            stack.site, settings.port, [*command, "rota.cli", "serve"], _variables(settings)
        )
        self.workers = [
            kind(stack.site, port, [*command, "tests.runs.worker_main"], self.variables(port))
            for kind, port in ((kind, free_port()) for kind in self.WORKERS)
        ]
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{settings.port}",
            timeout=15,
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=8),
        )
        self.service = Service(stack, settings, self.http)
        # 5xx answers that a kill does not explain.
        self.unexpected: list[str] = []

    @classmethod
    @asynccontextmanager
    async def start(
        cls, stack: Stack, name: str, *, workers: int = 2, **changes: Any
    ) -> AsyncIterator["World"]:
        """Starts on its own database and Temporal namespace. The stack can be shared."""
        namespace = name.replace("_", "-")
        async with Scripted.start() as scripted:
            await new_namespace(stack.endpoints.temporal_address, namespace)
            settings = await prepared_settings(
                stack,
                "a",
                name,
                **{"temporal_namespace": namespace, "run_heartbeat_s": 2.0, **changes},
            )
            await sync(settings.database_url.get_secret_value(), CATALOG)
            world = cls(stack, scripted, settings)
            world.workers = world.workers[:workers]
            try:
                await asyncio.gather(
                    *[component.start() for component in (world.api, *world.workers)]
                )
                yield world
            finally:
                await asyncio.gather(
                    *[component.stop() for component in (world.api, *world.workers)]
                )
                await world.http.aclose()

    def variables(self, metrics_port: int | None) -> Mapping[str, str]:
        """The environment variables of a worker. Without a port, it serves no metrics."""
        settings = self.settings.model_copy(update={"metrics_port": metrics_port})
        return {
            **_variables(settings),
            "ROTA_MODELS": self.scripted.models(),
            "TEST_TOOLS_URL": self.scripted.url,
        }

    async def six_steps(self, *, delay_s: float = 0, name: str | None = None) -> str:
        """A script for six steps: start, model, read-only tool, model, write tool, model."""
        ref = name or f"r{uuid4().hex[:12]}"
        if delay_s:
            await self.scripted.http.post(f"/always/{ref}", json={"delayS": delay_s})
        return await self.scripted.script(
            calls(("desk__lookup", {"ref": ref}), delayS=delay_s),
            calls(("desk__send", {"ref": ref, "text": "hello"}), delayS=delay_s),
            says("All done.", delayS=delay_s),
            name=ref,
        )

    async def newcomer(self, tier: str = "enterprise") -> Person:
        return await newcomer(self.service, tier=tier)

    async def request_until_response(
        self, person: Person, method: str, path: str, body: Any = None, deadline_s: float = 240
    ) -> httpx.Response:
        """Repeats a request until the answer is neither a 5xx nor a 429.

        All attempts have the same Idempotency-Key, so they count as one request.
        """
        key = uuid4().hex
        async with asyncio.timeout(deadline_s):
            while True:
                try:
                    answer = await person.request(
                        method, path, json=body, headers={"Idempotency-Key": key}
                    )
                except httpx.TransportError:
                    await asyncio.sleep(0.2)
                    continue
                if answer.status_code < 500 and answer.status_code != 429:
                    return answer
                # Expected while the database is being killed.
                expected = answer.status_code in (503, 429) or "DATABASE_ERROR" in answer.text
                if not expected:
                    self.unexpected.append(f"{method} {path}: {answer.status_code} {answer.text}")
                await asyncio.sleep(0.2)

    async def create(self, person: Person, agent: str, script: str, **body: Any) -> str:
        """Creates a task and returns its ID once it is acknowledged."""
        wanted = {"name": "A task", "agent": agent, "input": f"Please. {script}", **body}
        answer = await self.request_until_response(person, "POST", "/api/tasks", wanted)
        assert answer.status_code == 201, answer.text
        task_id: str = answer.json()["task"]["id"]
        return task_id

    async def task(self, person: Person, task_id: str) -> dict[str, Any]:
        answer = await self.request_until_response(person, "GET", f"/api/tasks/{task_id}")
        found: dict[str, Any] = answer.json()["task"]
        return found

    async def until(
        self, person: Person, task_id: str, *statuses: str, deadline_s: float = 300
    ) -> dict[str, Any]:
        async with asyncio.timeout(deadline_s):
            while (task := await self.task(person, task_id))["status"] not in statuses:
                await asyncio.sleep(0.15)
            return task

    async def query(self, sql: str, *arguments: object) -> list[Any]:
        """Reads as the owner of the database, without row security."""
        async with self.service.owner() as connection:
            found: list[Any] = await connection.fetch(sql, *arguments)
            return found

    async def counts(self) -> dict[str, int]:
        rows = await self.query("SELECT status, count(*) AS tasks FROM tasks GROUP BY status")
        return {row["status"]: row["tasks"] for row in rows}

    async def until_terminal(self, deadline_s: float) -> dict[str, int]:
        return await until(self.counts, lambda counts: not set(counts) - set(TERMINAL), deadline_s)

    async def restart_everything(self) -> None:
        """Kills all components at the same time, then starts them again."""
        ours = (self.api, *self.workers)
        everything = [*ours, *(self.stack.component(name) for name in self.stack.names)]
        await asyncio.gather(*[component.kill() for component in everything])
        await asyncio.gather(*[self.stack.component(name).start() for name in self.stack.names])
        await asyncio.gather(*[component.start() for component in ours])

    async def temporal(self) -> Client:
        return await Client.connect(
            self.settings.temporal_address, namespace=self.settings.temporal_namespace
        )


def _variables(settings: Settings) -> dict[str, str]:
    """Leaves out empty lists, which some settings cannot parse."""
    return {name: text for name, text in environment(settings).items() if text not in ("[]", "()")}


async def start_again(component: Component, deadline_s: float = 120) -> None:
    """Starts a component like a supervisor: repeatedly, until what it needs is available."""
    async with asyncio.timeout(deadline_s):
        while True:
            try:
                await component.start()
                return
            except ComponentError:
                await asyncio.sleep(0.5)


def write_report(name: str, figures: Mapping[str, Any]) -> None:
    """Stores the figures of a chaos test under its name."""
    file = Path("bench-results") / "chaos.json"
    file.parent.mkdir(exist_ok=True)
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**before, name: figures}, indent=2) + "\n")
