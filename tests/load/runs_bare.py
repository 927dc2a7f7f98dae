"""The baseline of the runs benchmark: a bare workflow with the same number of activities.

As a program, this module is its worker. It uses the same settings as the product's worker.
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
class BareInput:
    url: str
    name: str


@workflow.defn(name="bare")
class Bare:
    @workflow.run
    async def run(self, bare_input: BareInput) -> None:
        await workflow.execute_local_activity(
            "bare_begin", bare_input, start_to_close_timeout=timedelta(seconds=30)
        )
        await self._call("bare_think", bare_input)
        await asyncio.gather(self._call("bare_act", bare_input), self._call("bare_act", bare_input))
        await self._call("bare_think", bare_input)

    async def _call(self, name: str, bare_input: BareInput) -> None:
        await workflow.execute_activity(
            name,
            bare_input,
            start_to_close_timeout=timedelta(minutes=15),
            heartbeat_timeout=timedelta(seconds=15),
        )


class Calls:
    def __init__(self) -> None:
        self._http = httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=100))

    @activity.defn(name="bare_begin")
    async def begin(self, bare_input: BareInput) -> None:
        pass

    @activity.defn(name="bare_think")
    async def call_model(self, bare_input: BareInput) -> None:
        await self._post(
            f"{bare_input.url}/v1/chat/completions",
            {"model": "scripted", "messages": [{"role": "user", "content": "Hello"}]},
        )

    @activity.defn(name="bare_act")
    async def call_tool(self, bare_input: BareInput) -> None:
        await self._post(
            f"{bare_input.url}/tools/lookup", {"arguments": {"ref": "bare"}, "key": bare_input.name}
        )

    async def _post(self, url: str, body: dict[str, Any]) -> None:
        (await self._http.post(url, json=body)).raise_for_status()


async def work() -> None:
    from temporalio.client import Client
    from temporalio.worker import UnsandboxedWorkflowRunner, Worker

    from rota.platform import collector
    from rota.platform.settings import Settings
    from rota.worker import CACHED_RUNS, MAX_WORKFLOW_TASKS

    settings = Settings()
    client = await Client.connect(settings.temporal_address, namespace=settings.temporal_namespace)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    calls = Calls()
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Bare],
        activities=[calls.begin, calls.call_model, calls.call_tool],
        max_concurrent_activities=settings.worker_calls,
        max_concurrent_workflow_tasks=MAX_WORKFLOW_TASKS,
        max_cached_workflows=CACHED_RUNS,
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        collector.settle()
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(work())
