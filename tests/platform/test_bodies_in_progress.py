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


async def test_bodies_without_a_rate_limit_count_toward_their_address(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MAX_IN_PROGRESS_BYTES", 5_000)
    _, writer = await asyncio.open_connection("127.0.0.1", service.settings.port)
    writer.write(b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\nx")

    async def status() -> int:
        return (await service.http.post("/webhooks/stripe", content=b"x" * 4_000)).status_code

    async with asyncio.timeout(20):
        while await status() != 429:
            await asyncio.sleep(0.01)
        assert (await service.http.get("/health/live")).status_code == 200
        writer.close()
        while await status() == 429:
            await asyncio.sleep(0.01)
