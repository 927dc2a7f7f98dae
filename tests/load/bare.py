"""The baseline: bare FastAPI handlers that do the same I/O and nothing else.

Each sends one EVALSHA of the limiter's script and the statements of the endpoint, with the same row
security, on the raw driver. What creates a task also appends an audit entry in its commit. No
authentication, no error format, no logs.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from uuid import UUID

import asyncpg
import uvicorn
from fastapi import FastAPI
from redis.asyncio import Redis

from rota.limits.window import SCRIPT
from rota.platform import audit, ids
from rota.platform.db import use_json
from tests.load.statements import InsertStatement, find_statement

ME = """
SELECT u.email, u.name AS user_name, u.created_at AS user_created_at,
       a.id, a.kind, a.name, a.tier, coalesce(m.role, 'owner') AS role,
       a.trial_ends_at, a.created_at
FROM users u
JOIN accounts a ON a.id = u.id
                OR a.id IN (SELECT account_id FROM members WHERE user_id = $1)
LEFT JOIN members m ON m.account_id = a.id AND m.user_id = u.id
WHERE u.id = $1
ORDER BY a.kind = 'personal' DESC, a.id
"""


@cache
def commit_with_entry(user: UUID) -> str:
    """Commits with an audit entry, which is always the same: the database does not check it."""
    details = {"status": "PENDING", "previousStatus": None, "by": ids.to_wire("user", user)}
    entry = audit.Entry.of(user, user, "task.created", None, details)
    return f"{audit.append_statements([entry], user)}COMMIT"


async def _skip_reset(_: Any) -> None:
    pass


def create() -> FastAPI:
    state: dict[str, Any] = {}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state["pool"] = await asyncpg.create_pool(
            os.environ["ROTA_DATABASE_URL"],
            server_settings={"role": "rota_app", "plan_cache_mode": "force_generic_plan"},
            # With the JSON codec and without a reset between two uses, like the service.
            init=use_json,
            reset=_skip_reset,
        )
        state["redis"] = redis = Redis.from_url(os.environ["ROTA_REDIS_URL"], protocol=2)
        state["sha"] = await redis.script_load(SCRIPT)
        state["find"] = await find_statement()
        state["insert"] = await InsertStatement.take()
        yield

    app = FastAPI(
        lifespan=lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )

    async def count(user: UUID) -> None:
        key, most = f"limits:{{bare:{user.hex}}}", 1_000_000
        await state["redis"].evalsha(state["sha"], 1, key, 60_000_000, 1, most, most, 1, 0, 0)

    def begin(mode: str, user: UUID) -> str:
        return (
            f"BEGIN {mode}; SET LOCAL rota.account_id = '{user}'; SET LOCAL rota.user_id = '{user}'"
        )

    @app.get("/me/{user}")
    async def me(user: UUID) -> list[dict[str, Any]]:
        await count(user)
        async with state["pool"].acquire() as connection:
            await connection.execute(begin("READ ONLY", user))
            rows = await connection.fetch(ME, user)
            await connection.execute("COMMIT")
        return [dict(row) for row in rows]

    @app.get("/tasks/{user}/{task}")
    async def get_task(user: UUID, task: UUID) -> dict[str, Any]:
        await count(user)
        async with state["pool"].acquire() as connection:
            await connection.execute(begin("READ ONLY", user))
            row = await connection.fetchrow(state["find"], user, task)
            await connection.execute("COMMIT")
        return dict(row)

    @app.post("/tasks/{user}", status_code=201)
    async def create_task(user: UUID, body: dict[str, Any]) -> dict[str, Any]:
        await count(user)
        arguments = state["insert"].arguments(user, user)
        async with state["pool"].acquire() as connection:
            await connection.execute(begin("", user))
            await connection.execute(state["insert"].text, *arguments)
            await connection.execute(commit_with_entry(user))
        return body

    return app


if __name__ == "__main__":
    uvicorn.run(
        create(), host="127.0.0.1", port=int(os.environ["PORT"]), log_config=None, access_log=False
    )
