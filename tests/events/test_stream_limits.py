"""How many event streams a process and an account can have open, and readers that do not read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from prometheus_client import REGISTRY

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.events import journal
from rota.platform.db import Database
from rota.platform.http.server import ClientTimeouts, Protocol
from tests.assertions import assert_error, assert_headers
from tests.events.reader import Reader
from tests.service import Person, Service
from tests.tasks.world import create, newcomer

OF_ACCOUNT, OF_PROCESS = 3, 5


@pytest.fixture(scope="module", params=["a", "b"])
async def small(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(
        stack,
        variant=request.param,
        name=f"few_streams_{request.param}",
        streams=OF_PROCESS,
        streams_per_account=OF_ACCOUNT,
    ) as started:
        await sync(started.database_url, catalog_folder())
        yield started


def open_streams() -> float:
    return REGISTRY.get_sample_value("rota_event_streams") or 0


async def fill(stack: AsyncExitStack, person: Person, path: str, count: int) -> list[Reader]:
    readers = [
        await stack.enter_async_context(
            Reader.open(person.service.settings.port, person.token, path)
        )
        for _ in range(count)
    ]
    for reader in readers:
        await reader.read()
        assert reader.status == 200
    return readers


async def until_open(person: Person, path: str) -> None:
    """Until the server has noticed that a stream was closed."""
    async with asyncio.timeout(10):
        while True:
            async with Reader.open(person.service.settings.port, person.token, path) as reader:
                await reader.head()
                if reader.status == 200:
                    return


def assert_over_share(response: httpx.Response, path: str) -> None:
    assert response.status_code == 429
    assert_headers(response)
    error = response.json()["error"]
    assert (error["code"], error["path"]) == ("RATE_LIMITED", path)
    assert int(response.headers["Retry-After"]) > 0


async def test_an_account_has_a_share_of_the_streams(small: Service) -> None:
    person, other = await newcomer(small), await newcomer(small)
    task = await create(person)
    before = open_streams()
    own = f"/api/tasks/{task['id']}/events"
    async with AsyncExitStack() as stack:
        await fill(stack, person, "/api/events", OF_ACCOUNT - 1)
        await fill(stack, person, own, 1)
        assert open_streams() == before + OF_ACCOUNT
        for path in ("/api/events", own):
            assert_over_share(await person.get(path), path)
        # Other requests of the account, and other accounts, are not affected.
        assert (await person.get("/api/tasks")).status_code == 200
        async with AsyncExitStack() as others:
            await fill(others, other, "/api/events", OF_PROCESS - OF_ACCOUNT)
            third = await newcomer(small)
            response = await third.get("/api/events")
            assert_error(response, 503, "SERVICE_UNAVAILABLE", "/api/events")
        await until_open(third, "/api/events")
    await until_open(person, own)
    async with asyncio.timeout(10):
        while open_streams() > before:
            await asyncio.sleep(0.01)


async def test_a_request_for_the_headers_only_takes_no_place(small: Service) -> None:
    person = await newcomer(small)
    for _ in range(OF_PROCESS + 1):
        assert (await person.request("HEAD", "/api/events")).status_code == 200


async def test_a_reader_that_does_not_read_loses_its_place(
    small: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Protocol, "timeouts", ClientTimeouts(response_s=0.3))
    person = await newcomer(small)
    db = Database(small.database_url, pool_size=1)
    await db.open()
    async with db.write(person.user_id) as tx:
        for _ in range(400):
            await journal.append(tx, "task.test", {"text": "x" * 20_000})
    await db.close()
    before = open_streams()
    async with Reader.open(
        small.settings.port, person.token, "/api/events?after=0", buffer=4096
    ) as reader:
        await reader.head()
        assert open_streams() == before + 1
        async with asyncio.timeout(10):
            while open_streams() > before:
                await asyncio.sleep(0.01)
