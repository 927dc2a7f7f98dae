"""What the router costs: the same requests to a cell, directly and through the router.

Both run in processes of their own. The two ways take turns, request by request, so that a busy
machine affects both. `python -m tests.load.cells_bench` prints a table.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from rota.agents.sync import sync
from rota.cells.settings import RouterSettings
from rota.dev.stack import Stack
from tests.cells.world import address
from tests.runs.runner import CATALOG
from tests.service import Service, free_port
from tests.tasks.wire import Wire, wires
from tests.tasks.world import create, newcomer

WARM_UP = 50


@dataclass(frozen=True)
class Result:
    name: str
    direct_ms: float
    routed_ms: float

    @property
    def ratio(self) -> float:
        return self.routed_ms / self.direct_ms


@asynccontextmanager
async def cell_and_router(stack: Stack) -> AsyncIterator[tuple[Service, Service]]:
    async with Service.start(
        stack, variant="a", name="cells_bench", cell="east", trusted_proxies=("127.0.0.1",)
    ) as prepared:
        await sync(prepared.database_url, CATALOG)
        async with prepared.process() as cell:
            settings = RouterSettings(
                env="test", port=free_port(), cells={"east": address(cell)}, log_level="WARNING"
            )
            router = Service(stack, settings, prepared.http)
            async with router.process(command=("rota.cli", "router")) as routed:
                yield cell, routed


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1_000


async def measure(stack: Stack, requests: int) -> list[Result]:
    async with cell_and_router(stack) as (cell, routed):
        person = await newcomer(cell)
        task = await create(person, agent="writer", status="WAITING_APPROVAL")
        body = {"name": "A task", "agent": "writer", "status": "WAITING_APPROVAL"}
        kinds: dict[str, Callable[[Wire], Awaitable[Any]]] = {
            "the caller (GET /api/me)": lambda wire: ok(wire, "GET", "/api/me"),
            "fetch a task": lambda wire: ok(wire, "GET", f"/api/tasks/{task['id']}"),
            "create a task": lambda wire: ok(wire, "POST", "/api/tasks", body),
        }
        results = []
        tokens = [person.token]
        async with (
            wires(cell.settings.port, tokens, 1) as [direct],
            wires(routed.settings.port, tokens, 1) as [through],
        ):
            for name, send in kinds.items():
                times: tuple[list[float], list[float]] = ([], [])
                for number in range(WARM_UP + requests):
                    for wire, seen in zip((direct, through), times, strict=True):
                        took = await timed(lambda w=wire, s=send: s(w))  # type: ignore[misc]
                        if number >= WARM_UP:
                            seen.append(took)
                results.append(Result(name, *map(statistics.median, times)))
            assert routed.running is not None
            process = psutil.Process(routed.running.pid)
            before = process.cpu_times()
            for _ in range(requests):
                await ok(through, "GET", "/api/me")
            after = process.cpu_times()
        used_s = after.user + after.system - before.user - before.system
        print(f"CPU time of the router for a request: {used_s / requests * 1_000:.2f} ms")
    return results


async def ok(wire: Wire, method: str, path: str, body: Any = None) -> None:
    response = await wire.request(method, path, body)
    assert response.status in (200, 201), response.body


async def main(requests: int) -> None:
    parts = ("postgres", "redis", "temporal", "idp")
    with tempfile.TemporaryDirectory(prefix="cells") as folder:
        async with Stack(Path(folder), components=parts, durable=False) as stack:
            results = await measure(stack, requests)
    print("| | direct, ms | through the router, ms | ratio |\n|---|---|---|---|")
    for each in results:
        print(f"| {each.name} | {each.direct_ms:.2f} | {each.routed_ms:.2f} | {each.ratio:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000)
    asyncio.run(main(parser.parse_args().requests))
