"""The other side of the runs' bench: a bare workflow with as many activities, and its worker.

Run as a program it is the worker; the settings are those of the product's.
"""

import asyncio
import signal
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    import httpx

QUEUE = "bare"


@dataclass(frozen=True)
class BareOrder:
    url: str
    name: str


@workflow.defn(name="bare")
class Bare:
    @workflow.run
    async def run(self, order: BareOrder) -> None:
        await workflow.execute_local_activity(
            "bare_begin", order, start_to_close_timeout=timedelta(seconds=30)
        )
        await self._call("bare_think", order)
        await asyncio.gather(self._call("bare_act", order), self._call("bare_act", order))
        await self._call("bare_think", order)

    async def _call(self, name: str, order: BareOrder) -> None:
        await workflow.execute_activity(
            name,
            order,
            start_to_close_timeout=timedelta(minutes=15),
            heartbeat_timeout=timedelta(seconds=15),
        )


class Calls:
    def __init__(self) -> None:
        self._http = httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=100))

    @activity.defn(name="bare_begin")
    async def begin(self, order: BareOrder) -> None:
        pass

    @activity.defn(name="bare_think")
    async def think(self, order: BareOrder) -> None:
        await self._post(
            f"{order.url}/v1/chat/completions",
            {"model": "scripted", "messages": [{"role": "user", "content": "Hello"}]},
        )

    @activity.defn(name="bare_act")
    async def act(self, order: BareOrder) -> None:
        await self._post(
            f"{order.url}/tools/lookup", {"arguments": {"ref": "bare"}, "key": order.name}
        )

    async def _post(self, url: str, body: dict[str, Any]) -> None:
        (await self._http.post(url, json=body)).raise_for_status()


async def work() -> None:
    from temporalio.client import Client
    from temporalio.worker import Worker
    from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

    from rota.platform.settings import Settings
    from rota.worker import CACHED_RUNS, MOVES_AT_ONCE

    settings = Settings()
    client = await Client.connect(settings.temporal_address, namespace=settings.temporal_namespace)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    made = Calls()
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Bare],
        activities=[made.begin, made.think, made.act],
        max_concurrent_activities=settings.worker_calls,
        max_concurrent_workflow_tasks=MOVES_AT_ONCE,
        max_cached_workflows=CACHED_RUNS,
        workflow_runner=SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules("tests.load")
        ),
    ):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(work())
