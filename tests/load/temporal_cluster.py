"""Temporal's server on PostgreSQL, as deploy/compose runs it, without containers.

The server is built from its sources, so it needs Go. The binaries stay in dist/temporal. It needs
an extension that the PostgreSQL of `rota dev` does not have, so it uses Debian's `postgresql`.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
from temporalio.api.workflowservice.v1 import GetClusterInfoRequest
from temporalio.client import Client

from rota.dev.postgres import Postgres
from rota.dev.processes import Component, Site, run_to_end
from tests.service import free_port

COMPOSE = Path("deploy/compose")
VERSION: str = re.findall(
    r"image: temporalio/server:(\S+)", Path("deploy/compose.yaml").read_text()
)[0]
BINARIES = Path("dist/temporal").absolute() / VERSION
SERVER, SQL_TOOL = BINARIES / "server", BINARIES / "sql"
# What deploy/compose/temporal.yaml listens on.
PORTS = ("7233", "7234", "7235", "7239", "6933", "6934", "6935", "6939", "9090")
DATABASES = ("temporal", "temporal_visibility")


class DebianPostgres(Postgres):
    name = "temporal-postgres"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.port = free_port()

    def missing(self) -> str | None:
        return None if self._programs() else "not installed: apt-get install postgresql"

    def _programs(self) -> Path | None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        return found[-1] if found else None


class TemporalCluster(Component):
    name = "temporal-cluster"
    # The first start compiles it.
    ready_within_s = 1800

    def __init__(self, site: Site, postgres: Postgres) -> None:
        super().__init__(site)
        self._postgres = postgres
        self._ports = {port: free_port() for port in PORTS}
        self._config = site.directory.path / "temporal.yaml"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._ports['7233']}"

    def missing(self) -> str | None:
        if _is_built() or shutil.which("go"):
            return None
        return "Temporal's server is built with Go: install it, and try again"

    def environment(self) -> Mapping[str, str]:
        assert self._postgres.admin_url
        at = urlsplit(self._postgres.admin_url)
        return {
            "SQL_PLUGIN": "postgres12",
            "SQL_HOST": at.hostname or "",
            "SQL_PORT": str(at.port),
            "SQL_USER": at.username or "",
            "SQL_PASSWORD": at.password or "",
        }

    def command(self) -> Sequence[str]:
        return [str(SERVER), "--config-file", str(self._config), "--allow-no-auth", "start"]

    async def prepare(self) -> None:
        if not _is_built():
            await self._build()
        connection = await asyncpg.connect(self._postgres.admin_url)
        try:
            for name in DATABASES:
                await connection.execute(f"CREATE DATABASE {name}")
        finally:
            await connection.close()
        # The script finds the tool by its usual name.
        (BINARIES / "temporal-sql-tool").unlink(missing_ok=True)
        (BINARIES / "temporal-sql-tool").symlink_to(SQL_TOOL)
        path = {"PATH": f"{BINARIES}:{os.environ['PATH']}"}
        script = ["sh", str(COMPOSE / "temporal-schema.sh")]
        await run_to_end(self.site, "temporal-schema", script, {**self.environment(), **path})
        self._config.write_text(self._configuration())

    def _configuration(self) -> str:
        text = (COMPOSE / "temporal.yaml").read_text()
        text = text.replace("0.0.0.0", "127.0.0.1")
        text = text.replace(
            "/etc/temporal/limits.yaml", str((COMPOSE / "temporal-limits.yaml").absolute())
        )
        for port, chosen in self._ports.items():
            text = re.sub(rf"\b{port}\b", str(chosen), text)
        return text

    async def _build(self) -> None:
        print(f"Building Temporal's server {VERSION}. This takes some minutes.", flush=True)
        programs = ("server", "tools/sql")
        packages = [f"go.temporal.io/server/cmd/{name}@v{VERSION}" for name in programs]
        command = ["go", "install", *packages]
        await run_to_end(
            self.site, "temporal-build", command, {"CGO_ENABLED": "0", "GOBIN": str(BINARIES)}
        )

    async def check(self) -> None:
        client = await Client.connect(self.address, lazy=True)
        async with asyncio.timeout(5):
            await client.workflow_service.get_cluster_info(GetClusterInfoRequest())


def _is_built() -> bool:
    return SERVER.exists() and SQL_TOOL.exists()
