"""The attacked service and its worker, with the limits of production, and how much they grow."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil

from rota.agents.sync import sync
from rota.dev.components import check_url
from rota.dev.stack import Stack
from rota.platform.settings import Settings
from tests.mcp.conftest import LOCAL
from tests.runs.runner import new_namespace
from tests.runs.scripted import Scripted
from tests.service import Service, environment, free_port, prepared_settings

SAMPLE_MEMORY_EVERY_S = 0.2
CATALOG = Path(__file__).parent / "catalog"
# Tests have longer timeouts, because a machine that runs several of them is slow.
PRODUCTION = {
    name: Settings.model_fields[name].default
    for name in (
        "database_pool_timeout_s",
        "database_lock_timeout_s",
        "database_statement_timeout_s",
    )
}


@dataclass(frozen=True)
class Attacked:
    service: Service
    worker: asyncio.subprocess.Process
    scripted: Scripted

    def memory(self) -> dict[tuple[str, int], float]:
        """The resident megabytes of each process."""
        assert self.service.running is not None
        found: dict[tuple[str, int], float] = {}
        for name, root in (("serve", self.service.running.pid), ("worker", self.worker.pid)):
            for number, pid in enumerate([root, *descendants(root)]):
                try:
                    resident = psutil.Process(pid).memory_info().rss
                except psutil.NoSuchProcess:
                    continue
                found["child" if number else name, pid] = resident / 1024**2
        return found


def descendants(pid: int) -> list[int]:
    """Read from the kernel's list of children: psutil reads every process of the machine."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in file.read_text().split()]
        except OSError:  # The thread has ended.
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


@asynccontextmanager
async def attacked(stack: Stack, variant: str, scripted: Scripted) -> AsyncIterator[Attacked]:
    """A service and a worker with the production's limits, and a new database."""
    namespace = f"attacks-{uuid4().hex[:8]}"
    await new_namespace(stack.endpoints.temporal_address, namespace)
    settings = await prepared_settings(
        stack,
        variant,
        "attacks",
        temporal_namespace=namespace,
        egress_allow=LOCAL,
        log_level="INFO",
        shutdown_grace_s=1.0,
        **PRODUCTION,
    )
    await sync(settings.database_url.get_secret_value(), CATALOG)
    base = Service(stack, settings, None)  # type: ignore[arg-type]
    async with (
        base.process(fresh=True, command=("tests.load.attacked", "serve")) as service,
        _worker(settings, scripted) as worker,
    ):
        yield Attacked(service, worker, scripted)


@asynccontextmanager
async def _worker(
    settings: Settings, scripted: Scripted
) -> AsyncIterator[asyncio.subprocess.Process]:
    port = free_port()
    variables = environment(settings.model_copy(update={"metrics_port": port}))
    given = {name: text for name, text in variables.items() if text not in ("[]", "{}", "()")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.load.attacked",
        "worker",
        env=os.environ | given | {"ROTA_MODELS": scripted.models()},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    await check_url(f"http://127.0.0.1:{port}/metrics")
                    break
                except Exception:
                    assert process.returncode is None
                    await asyncio.sleep(0.1)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class MemoryWatch:
    """The growth of each process, from when it was first seen."""

    def __init__(self, target: Attacked) -> None:
        self._target = target
        self._first = target.memory()
        self._highest = dict(self._first)

    async def watch(self) -> None:
        while True:
            for process, mb in self._target.memory().items():
                self._first.setdefault(process, mb)
                self._highest[process] = max(mb, self._highest.get(process, mb))
            await asyncio.sleep(SAMPLE_MEMORY_EVERY_S)

    def growth_mb(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for (name, pid), mb in self._highest.items():
            found[name] = max(found.get(name, 0.0), mb - self._first[name, pid])
        return found
