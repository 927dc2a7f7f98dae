"""The request bodies that one account has in progress have a largest size together."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota.platform.http import bodies
from tests.assertions import assert_error
from tests.platform.test_database_timeouts import account_locked
from tests.service import Service
from tests.tasks.world import newcomer, until_waiting_for_locks


@pytest.mark.parametrize("chunked", [False, True])
async def test_bodies_over_the_limit_are_refused_for_this_account_only(
    service: Service, monkeypatch: pytest.MonkeyPatch, chunked: bool
) -> None:
    limit = bodies.MAX_BODY_BYTES if chunked else 5_000
    monkeypatch.setattr(bodies, "MAX_IN_PROGRESS_BYTES", limit)
    writer, other = await newcomer(service), await newcomer(service)
    body = {"name": "x", "input": "y" * 4_000}

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"name": "x"}'

    async with account_locked(service, writer), asyncio.timeout(20):
        options = {"content": chunks()} if chunked else {"json": body}
        headers = {"Content-Type": "application/json"}
        first = asyncio.create_task(
            writer.request("POST", "/api/tasks", headers=headers, **options)
        )
        await until_waiting_for_locks(service, 1)
        refused = await writer.post("/api/tasks", body)
        assert_error(refused, 429, "RATE_LIMITED")
        assert refused.headers["Retry-After"] == "1"
        assert (await writer.get("/api/me")).status_code == 200
        assert (await other.post("/api/tasks", body)).status_code == 201
    assert (await first).status_code == 201
    assert (await writer.post("/api/tasks", body)).status_code == 201
