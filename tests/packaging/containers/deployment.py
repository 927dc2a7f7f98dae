"""Rota in containers: processes and operator commands of the image, on a database of its own."""

import asyncio
import base64
import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from rota.dev.stack import Endpoints, Stack
from rota.platform.settings import Settings
from tests.packaging.containers.parts import PASSWORD
from tests.packaging.containers.podman import (
    LIMITS,
    RESTRICTED,
    Container,
    podman,
    variables,
)
from tests.service import PLENTY, Service, environment, free_port, until_live

IMAGE = os.environ.get("ROTA_TEST_IMAGE", "rota:latest")
ADDRESSES: dict[str, str] = json.loads(os.environ.get("ROTA_TEST_CONTAINERS", "{}"))
SECRET_KEY, AUDIT_KEY = (base64.b64encode(letter * 32).decode() for letter in (b"s", b"a"))
PYTHON = "/opt/rota/bin/python"
LOGS = Path(__file__).parents[3] / "dist" / "image-test"


class ContainerStack(Stack):
    """An identity provider in this process's network, and the addresses of the containers."""

    @property
    def endpoints(self) -> Endpoints:
        admin = f"postgresql://postgres:{PASSWORD}@{ADDRESSES['postgres']}:5432/postgres"
        temporal = f"{ADDRESSES['temporal']}:7233"
        return replace(super().endpoints, admin_database_url=admin, temporal_address=temporal)


@dataclass(frozen=True)
class Deployment:
    """The settings of one installation, and its name, which is also that of its database."""

    name: str
    settings: Settings

    @classmethod
    async def prepare(
        cls, stack: Stack, name: str, *, variant: str = "a", redis: int, **changes: Any
    ) -> "Deployment":
        """Creates the database. The image updates its schema and loads the catalog."""
        assert stack.endpoints.admin_database_url
        admin = await asyncpg.connect(stack.endpoints.admin_database_url)
        await admin.execute(f"CREATE DATABASE {name} OWNER rota_owner")
        await admin.close()
        port = free_port()
        settings = Settings(
            env="development",
            variant=variant,
            host="0.0.0.0",
            port=port,
            metrics_port=free_port(),
            public_url=f"http://127.0.0.1:{port}",
            secret_key=SECRET_KEY,
            audit_key=AUDIT_KEY,
            database_url=_login("rota_serve", name),
            database_statement_cache=0,
            redis_url=f"redis://:{PASSWORD}@redis:6379/{redis}",
            temporal_address="temporal:7233",
            oidc_issuers=json.loads(stack.environment()["ROTA_OIDC_ISSUERS"]),
            allowances=PLENTY,
            egress_allow=("127.0.0.0/8",),
        ).model_copy(update=changes)
        made = cls(name, settings)
        await made.admin("migrate")
        await made.admin("agents", "sync", "--yes")
        return made

    async def admin(self, *command: str, mount: Path | None = None) -> str:
        """The output of an operator command, which must succeed."""
        files = ("--volume", f"{mount}:/files:ro") if mount else ()
        owner = {"ROTA_MIGRATION_DATABASE_URL": _login("rota_owner", self.name)}
        done = await self.ended("admin", *command, changes=owner, options=files)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def ended(
        self, *command: str, changes: Mapping[str, str], options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """A process that ends by itself."""
        return await asyncio.to_thread(
            podman, "run", "--rm", *self._options(changes), *options, IMAGE, *command, check=False
        )

    @asynccontextmanager
    async def running(
        self, command: str, kind: str = "usual", **changes: str
    ) -> AsyncIterator[Container]:
        container = self.container(command, kind)
        await asyncio.to_thread(container.remove)
        options = self._options(changes)
        await asyncio.to_thread(
            podman, "run", "--detach", "--name", container.name, *options, IMAGE, command
        )
        try:
            yield container
        finally:
            LOGS.mkdir(parents=True, exist_ok=True)
            (LOGS / f"{container.name}.log").write_text(container.log())
            await asyncio.to_thread(container.remove)

    def container(self, command: str, kind: str = "usual") -> Container:
        return Container(f"rota-image-test-{self.name}-{command}-{kind}")

    def _options(self, changes: Mapping[str, str]) -> tuple[str, ...]:
        # Empty settings keep their defaults.
        given = environment(self.settings).items()
        all_given = {name: text for name, text in given if text not in ("[]", "{}", "()")}
        place = f"container:{ADDRESSES['place']}"
        return (*LIMITS, *RESTRICTED, "--network", place, *variables(all_given | dict(changes)))

    @asynccontextmanager
    async def served(self, stack: Stack) -> AsyncIterator[Service]:
        base_url = f"http://127.0.0.1:{self.settings.port}"
        async with (
            self.running("serve"),
            httpx.AsyncClient(base_url=base_url, timeout=30) as http,
        ):
            await until_live(http)
            yield Service(stack, self.settings, http)

    @asynccontextmanager
    async def working(self, models: str, port: int) -> AsyncIterator[Container]:
        async with self.running(
            "worker",
            ROTA_DATABASE_URL=_login("rota_worker", self.name),
            ROTA_MODELS=models,
            ROTA_WORKER_PORT=str(port),
        ) as container:
            await until_ready(port)
            yield container


def _login(name: str, database: str) -> str:
    return f"postgresql://{name}:{PASSWORD}@pgbouncer:6432/{database}"


async def until_ready(port: int, deadline_s: float = 120) -> dict[str, Any]:
    async with asyncio.timeout(deadline_s), httpx.AsyncClient() as http:
        while True:
            try:
                answer = await http.get(f"http://127.0.0.1:{port}/health/ready")
                if answer.status_code == 200:
                    found: dict[str, Any] = answer.json()
                    return found
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
