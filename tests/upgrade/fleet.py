"""The processes of an installation: two of `rota serve` and two workers, each of any release."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from rota.dev import components
from rota.dev.stack import Stack
from rota.platform.settings import Settings
from tests.chaos.world import READY_WITHIN_S, World, _variables
from tests.runs.runner import new_namespace
from tests.runs.scripted import Scripted
from tests.service import (
    Service,
    _own_nothing,
    create_database,
    free_port,
    prepared_settings,
)
from tests.upgrade.balancer import Balancer
from tests.upgrade.release import Release

# The names of the processes, in the order in which they are replaced.
ORDER = ("serve-1", "worker-1", "serve-2", "worker-2")
# What an operator gives a process to stop.
GRACE_S = 620


class Process(components.Service):
    """Ready when /health/ready says so."""

    ready_within_s = READY_WITHIN_S
    grace_s = GRACE_S


@dataclass
class Replacement:
    """One process was stopped, and one of another release started."""

    name: str
    release: str
    stop_s: float
    start_s: float


class Installation(World):
    """As in production: a login that owns nothing, and the default timeouts."""

    def __init__(
        self, stack: Stack, scripted: Scripted, settings: Settings, owner_url: str, port: int
    ) -> None:
        self.stack, self.scripted, self.settings = stack, scripted, settings
        self.owner_url = owner_url
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            timeout=30,
            limits=httpx.Limits(max_connections=200),
        )
        self.service = Service(stack, settings, self.http)
        self.unexpected: list[str] = []
        self.balancer = Balancer(port)
        self.running: dict[str, Process] = {}
        self.releases: dict[str, str] = {}
        self.replacements: list[Replacement] = []

    @classmethod
    @asynccontextmanager
    async def prepare(
        cls, stack: Stack, first: Release, name: str, variant: str = "a", **changes: Any
    ) -> AsyncIterator["Installation"]:
        """A database that the first release has created, and a load balancer without processes."""
        async with Scripted.start() as scripted:
            namespace = name.replace("_", "-")
            await new_namespace(stack.endpoints.temporal_address, namespace)
            defaults = {
                field: Settings.model_fields[field].default
                for field in (
                    "database_pool_timeout_s",
                    "database_lock_timeout_s",
                    "database_statement_timeout_s",
                    "shutdown_grace_s",
                )
            }
            settings = await prepared_settings(
                stack, variant, name, temporal_namespace=namespace, **{**defaults, **changes}
            )
            owner = settings.database_url.get_secret_value()
            # Empty again: only the release before may have made its schema.
            await create_database(stack.endpoints.database_url, name)
            admin = stack.endpoints.admin_database_url
            assert admin is not None
            login = await _own_nothing(admin, owner)
            settings = settings.model_copy(
                update={"database_url": type(settings.database_url)(login)}
            )
            found = cls(stack, scripted, settings, owner, settings.port)
            await first.admin(found.variables(None), "migrate")
            async with Balancer.start(settings.port) as found.balancer:
                try:
                    yield found
                finally:
                    await asyncio.gather(*[process.stop() for process in found.running.values()])
                    await found.http.aclose()

    def variables(self, metrics_port: int | None) -> Mapping[str, str]:
        return {**super().variables(metrics_port), "ROTA_MIGRATION_DATABASE_URL": self.owner_url}

    async def launch(self, name: str, release: Release) -> None:
        port = free_port()
        kind = type(name, (Process,), {"name": name})
        if name.startswith("serve"):
            variables = _variables(self.settings.model_copy(update={"port": port}))
            command = release.command("rota.cli", "serve")
        else:
            variables = dict(self.variables(port))
            command = release.command("tests.runs.worker_main")
        log = self.stack.site.directory.log(name)
        before = log.read_bytes() if log.exists() else b""
        process = kind(self.stack.site, port, command, {**variables, **release.variables()})
        log.write_bytes(before)
        self.running[name] = process
        self.releases[name] = release.name
        await process.start()
        if name.startswith("serve"):
            self.balancer.add(port)
            await self.balancer.until_ready(port)

    async def replace(self, name: str, release: Release) -> None:
        """SIGTERM, wait for its end, start the other release, wait until it is ready."""
        process = self.running[name]
        began = time.monotonic()
        child = process._child
        assert child is not None
        await process.stop()
        assert child.exit_code == 0, f"{name} exited with code {child.exit_code}"
        if name.startswith("serve"):
            self.balancer.remove(process.port)
        stopped = time.monotonic()
        await self.launch(name, release)
        ended = time.monotonic()
        self.replacements.append(Replacement(name, release.name, stopped - began, ended - stopped))
