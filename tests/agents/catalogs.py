"""Reads and syncs agents as tests need them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
from typer.testing import CliRunner, Result

from rota.agents.files import read_files
from rota.agents.model import Definition
from rota.agents.sync import Change
from rota.cli import cli
from rota.platform.db import use_json


def read_catalog(folder: Path) -> list[Definition]:
    """Every agent below the folder. Raises CatalogInvalid with all problems."""
    return [file.definition for file in read_files(folder)]


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url, **options)
    try:
        await use_json(connection)
        yield connection
    finally:
        await connection.close()


async def current(url: str) -> dict[str, int]:
    async with connected(url) as connection:
        rows = await connection.fetch("SELECT name, version FROM current_agents")
        return {row["name"]: row["version"] for row in rows}


def names(changes: tuple[Change, ...]) -> list[tuple[str, int]]:
    return [(change.name, change.version) for change in changes]


async def run_sync(url: str, *arguments: str, typed: str | None = None) -> Result:
    """Runs the command in a thread, because it starts its own event loop."""
    environment = {"ROTA_DATABASE_URL": url, "COLUMNS": "200"}
    command = ["admin", "agents", "sync", *arguments]
    return await asyncio.to_thread(CliRunner().invoke, cli, command, input=typed, env=environment)
