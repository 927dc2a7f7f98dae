"""Measures how hostile tool servers of one account slow down the calls of another account.

    python -m tests.load.hostile_bench [seconds]

The service, a normal tool server and the hostile ones run in separate processes. One account
calls a normal tool every few milliseconds, alone and during each hostile case. Prints the p99 of
both. Exits with 1 if the p99 over all cases is more than 1.2 times the p99 alone.
"""

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from tests.mcp import hostile
from tests.mcp.conftest import LOCAL, connect, invoke, try_to_connect
from tests.mcp.test_hostile import PHASES
from tests.service import Person, Service, free_port, prepared_settings
from tests.tasks.world import newcomer

MAX_RATIO = 1.2
INTERVAL_S = 0.008


async def serve_hostile() -> None:
    """Serves each case on its own port and prints their URLs as one line of JSON."""
    async with AsyncExitStack() as exits:
        urls = {}
        for name, phase in PHASES:
            behaviour = (hostile.BEHAVIOURS | hostile.LISTINGS)[name]
            handle = hostile.mcp_handler(**{phase: behaviour})
            urls[f"{name} at {phase}"] = await exits.enter_async_context(hostile.served(handle))
        print(json.dumps(urls), flush=True)
        await asyncio.Event().wait()


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield started
    finally:
        started.kill()
        await started.wait()


async def times(call: Callable[[], Awaitable[object]], seconds: float) -> list[float]:
    found: list[float] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        started = time.perf_counter()
        await call()
        found.append(time.perf_counter() - started)
        await asyncio.sleep(INTERVAL_S)
    return found


async def attack(person: Person, name: str, url: str) -> None:
    """Connects or calls as fast as possible, until it is cancelled."""
    server = None
    if name.endswith("at call"):
        server = await connect(person, url, name="bad")
    while True:
        if server:
            await invoke(person, server, "t")
        else:
            await try_to_connect(person, url, name="bad")


def p99(found: list[float]) -> float:
    return quantiles(found, n=100)[98]


async def measure(stack: Stack, good: str, cases: dict[str, str], seconds: float) -> float:
    settings = await prepared_settings(
        stack, "a", "hostile_bench", egress_allow=LOCAL, mcp_connect_s=5.0, mcp_call_s=3.0
    )
    alone: list[float] = []
    during_attack: list[float] = []
    rows: list[tuple[str, float, float]] = []
    async with Service(stack, settings, None).process(fresh=True) as service:  # type: ignore[arg-type]
        other = await newcomer(service)
        server = await connect(other, good)

        async def call() -> None:
            answer = await invoke(other, server, "add", {"a": 1, "b": 2})
            assert answer.status_code == 200, answer.text

        await times(call, 1)
        for name, url in cases.items():
            before = await times(call, seconds)
            attacker = asyncio.create_task(attack(await newcomer(service), name, url))
            await asyncio.sleep(0.3)
            during = await times(call, seconds)
            attacker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await attacker
            alone += before
            during_attack += during
            rows.append((name, median(during) / median(before), p99(during) / p99(before)))
    table = Table(
        "hostile server", "median", "p99", title="Calls of another account, during attack ÷ alone"
    )
    for name, middle, last in sorted(rows, key=lambda row: -row[2]):
        table.add_row(name, f"{middle:.2f}", f"{last:.2f}")
    ratio = p99(during_attack) / p99(alone)
    table.add_section()
    table.add_row("all", f"{median(during_attack) / median(alone):.2f}", f"{ratio:.2f}")
    Console(width=100).print(table)
    print(f"p99 alone {p99(alone) * 1000:.1f} ms, during attack {p99(during_attack) * 1000:.1f} ms")
    return ratio


async def main(seconds: float) -> int:
    port = free_port()
    async with (
        process("tests.load.mcp_bench", "--serve", str(port)),
        process("tests.load.hostile_bench", "--serve") as bad,
    ):
        assert bad.stdout is not None
        cases = json.loads(await bad.stdout.readline())
        with tempfile.TemporaryDirectory(prefix="rota") as data:
            components = ("postgres", "redis", "idp")
            async with Stack(Path(data), components=components, durable=False) as stack:
                ratio = await measure(stack, f"http://127.0.0.1:{port}/mcp", cases, seconds)
    return 0 if ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve_hostile())
    else:
        sys.exit(asyncio.run(main(float(sys.argv[1]) if sys.argv[1:] else 2.5)))
