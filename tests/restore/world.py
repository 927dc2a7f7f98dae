"""A database, a copy of it from an earlier moment, and services on both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from rota.app import create_app
from rota.cli import cli
from rota.platform.settings import Settings
from tests.service import Person, Service, _client, drop_database, environment, free_port, serving

SINCE_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


async def run(settings: Settings, *arguments: str) -> Result:
    """Runs a command in a thread, because it has its own event loop."""
    env = {**environment(settings)}
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, list(arguments), env=env))


@dataclass
class Restored:
    """The copy of a service's database, which nothing serves yet."""

    service: Service
    settings: Settings
    moment: datetime

    @classmethod
    async def of(cls, service: Service, name: str) -> "Restored":
        """Copies the database, as it is now."""
        admin = service.stack.endpoints.admin_database_url
        assert admin is not None
        base, source = service.database_url.rsplit("/", 1)
        connection = await asyncpg.connect(admin)
        try:
            await drop_database(connection, name)
            # A source must not be in use. The service connects again.
            for _ in range(50):
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
                    source,
                )
                try:
                    await connection.execute(f"CREATE DATABASE {name} TEMPLATE {source} OWNER rota")
                    break
                except asyncpg.ObjectInUseError:
                    continue
        finally:
            await connection.close()
        # The public URL stays: sessions are valid only for it.
        settings = service.settings.model_copy(
            update={"database_url": SecretStr(f"{base}/{name}"), "port": free_port()}
        )
        return cls(service, settings, datetime.now(UTC))

    async def collect(self, path: Path, *options: str, since: datetime | None = None) -> Result:
        """`--final` among the options: nothing happens afterwards. The service runs on, idle."""
        at = (since or self.moment).strftime(SINCE_FORMAT)
        options = ("--output", str(path), "--ignore-connections", *options)
        return await run(
            self.service.settings, "admin", "restore", "collect", "--since", at, *options
        )

    async def finish(self, *arguments: str) -> Result:
        return await run(self.settings, "admin", "restore", "finish", *arguments)

    async def collect_and_finish(self, path: Path) -> Result:
        collected = await self.collect(path, "--final")
        assert collected.exit_code == 0, collected.output
        finished = await self.finish("--file", str(path))
        assert finished.exit_code == 0, finished.output
        return finished

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Service]:
        app = create_app(self.settings)
        async with serving(app, self.settings), _client(self.settings) as http:
            yield Service(self.service.stack, self.settings, http)

    async def owned(self, sql: str, *arguments: object) -> Any:
        found = Service(self.service.stack, self.settings, self.service.http)
        async with found.owner() as connection:
            return await connection.fetch(sql, *arguments)


def there(person: Person, service: Service) -> Person:
    """The same client, at another service."""
    return replace(person, service=service)
