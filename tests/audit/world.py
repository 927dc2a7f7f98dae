"""Trails for tests: their rows, and what `rota admin audit` says about them."""

import asyncio
import json
from typing import Any
from uuid import UUID

from typer.testing import CliRunner, Result

from rota.audit import verify
from rota.audit.verify import Problem
from rota.cli import cli
from rota.platform.db import NO_USER, AccountReader
from tests.service import Service, environment


async def entries_of(service: Service, account_id: UUID) -> list[dict[str, Any]]:
    """The stored entries, with what is private as an object."""
    async with service.owner() as connection:
        rows = await connection.fetch(
            "SELECT * FROM audit_entries WHERE account_id = $1 ORDER BY sequence", account_id
        )
    return [dict(row) | {"private": json.loads(row["private"])} for row in rows]


async def problems_of(connection: Any, account_id: UUID) -> list[Problem]:
    return await verify.problems(AccountReader(connection, account_id, NO_USER))


async def rota(service: Service, *arguments: str) -> Result:
    """Runs a command in a thread, because it has its own event loop."""
    env = dict(environment(service.settings))
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, list(arguments), env=env))
