"""Credentials that do not work cost few look-ups, and those that work are never refused for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID, uuid4

import httpx
import pytest

from rota.auth import key_lookup, queries, secrets
from rota.dev.stack import Stack
from rota.limits import window
from rota.limits.result import Ceilings
from rota.limits.window import Window
from rota.platform import ids
from rota.platform.db import AccountTransaction
from tests.agents.conftest import counted_statements
from tests.auth.key_requests import create_key
from tests.service import Service

REQUESTS = 700
AT_ONCE = 100
# What an address may send in a minute.
CEILINGS = Ceilings(all=600, ai=300)
_addresses = (f"198.18.{n // 250}.{n % 250 + 1}" for n in count())


@pytest.fixture(scope="module")
async def proxied(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(
        stack, variant="a", name="key_lookup", trusted_proxies=("127.0.0.1",)
    ) as started:
        yield started


async def ask(service: Service, bearer: str, address: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {bearer}", "X-Forwarded-For": address}
    return await service.http.get("/api/me", headers=headers)


async def use_up(service: Service, address: str, requests: int = CEILINGS.all) -> None:
    """Counts requests of this address, so that the window is full however slow the machine is."""
    redis = window.connect(service.settings.redis_url.get_secret_value())
    try:
        limiter = Window(redis, processes=1, timeout_s=10)
        counted = await limiter.admit(f"ip:{address}", CEILINGS, ai=False, cost=requests)
        assert (counted.allowed, counted.remaining) == (True, CEILINGS.all - requests)
        await limiter.aclose()
    finally:
        await redis.aclose()


async def flood(
    service: Service, bearer: Callable[[], str], address: str, requests: int = REQUESTS
) -> set[int]:
    """The statuses of the responses."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one() -> int:
        async with room:
            return (await ask(service, bearer(), address)).status_code

    return set(await asyncio.gather(*[one() for _ in range(requests)]))


def of_keys(statements: list[str]) -> list[str]:
    return [text for text in statements if "api_key" in text]


async def test_invented_keys_cost_few_look_ups(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, address = time.monotonic(), next(_addresses)
    await use_up(proxied, address, CEILINGS.all - 200)
    with counted_statements(monkeypatch) as statements:
        assert await flood(proxied, secrets.new_secret, address) == {401, 429}
    shared = (time.monotonic() - started) / key_lookup.SHARED_EVERY_S
    assert len(of_keys(statements)) <= min(key_lookup.FAILURES + shared + 1, REQUESTS / 4)


@pytest.mark.long
async def test_a_valid_key_works_from_an_address_that_sends_invented_ones(
    proxied: Service,
) -> None:
    person = await proxied.sign_in()
    # Keys that the process has not seen before.
    keys = [(await create_key(person))["secret"] for _ in range(20)]
    address = next(_addresses)
    await use_up(proxied, address, CEILINGS.all - 100)
    flooded = asyncio.create_task(flood(proxied, secrets.new_secret, address))
    # From then on, the window of the address would refuse every request.
    async with asyncio.timeout(60):
        while (await ask(proxied, secrets.new_secret(), address)).status_code != 429:
            pass
    responses = await asyncio.gather(*[ask(proxied, key, address) for key in keys])
    assert [response.status_code for response in responses] == [200] * 20
    assert await flooded == {401, 429}
    assert (await ask(proxied, person.token, address)).status_code == 200


async def test_a_key_that_was_valid_before_does_not_wait_for_others(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, address = await proxied.sign_in(), next(_addresses)
    key = (await create_key(person))["secret"]
    assert (await ask(proxied, key, address)).status_code == 200
    await flood(proxied, secrets.new_secret, address, key_lookup.FAILURES + 1)
    monkeypatch.setattr(key_lookup, "SHARED_EVERY_S", 600)
    with counted_statements(monkeypatch) as statements:
        async with asyncio.timeout(10):
            # Until the caller is no longer cached, and looked up again.
            while not of_keys(statements):
                assert (await ask(proxied, key, address)).status_code == 200
    # Its owner is known. The key itself is read again.
    assert not [text for text in statements if "api_key_hashes" in text]


async def test_a_key_whose_owner_is_known_ends_when_it_is_deleted(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await proxied.sign_in()
    created = await create_key(person)
    assert (await ask(proxied, created["secret"], next(_addresses))).status_code == 200
    # As if another process deleted it: this one does not forget the caller at once.
    async with proxied.owner() as connection:
        await connection.execute(
            "DELETE FROM api_keys WHERE id = $1", ids.from_wire("key", created["key"]["id"])
        )
    with counted_statements(monkeypatch) as statements:
        async with asyncio.timeout(10):
            while (await ask(proxied, created["secret"], next(_addresses))).status_code != 401:
                await asyncio.sleep(0.05)
    assert not [text for text in statements if "api_key_hashes" in text]


async def test_a_database_error_reaches_every_request_that_waits(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = next(_addresses)
    await flood(proxied, secrets.new_secret, address, key_lookup.FAILURES + 1)

    async def fail(*_: object) -> None:
        raise OSError("the database is down")

    with monkeypatch.context() as patch:
        patch.setattr("rota.auth.queries.find_key_owners", fail)
        assert await flood(proxied, secrets.new_secret, address, 10) == {500}
    assert await flood(proxied, secrets.new_secret, address, 10) == {401}


async def test_an_expired_key_costs_few_look_ups(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await proxied.sign_in()
    expires_at = datetime.now(UTC) + timedelta(seconds=1)
    key = (await create_key(person, expiresAt=expires_at.isoformat()))["secret"]
    async with asyncio.timeout(10):
        while (await ask(proxied, key, next(_addresses))).status_code != 401:
            await asyncio.sleep(0.05)
    with counted_statements(monkeypatch) as statements:
        assert await flood(proxied, lambda: key, next(_addresses), 200) == {401}
    assert len(of_keys(statements)) < 100


async def test_a_token_of_an_ended_session_costs_few_look_ups(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await proxied.sign_in()
    assert (await person.post("/api/auth/logout")).status_code == 200
    with counted_statements(monkeypatch) as statements:
        assert await flood(proxied, lambda: person.token, next(_addresses), 200) == {401}
    assert len([text for text in statements if "sessions" in text]) < 100


async def test_forged_tokens_cost_no_look_ups(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await proxied.sign_in()
    head, _, signature = person.token.rpartition(".")
    with counted_statements(monkeypatch) as statements:
        forged = f"{head}.{signature[::-1]}"
        assert await flood(proxied, lambda: forged, next(_addresses), 200) == {401}
    assert [text for text in statements if "signing_keys" not in text] == []


async def test_accounts_that_a_session_cannot_select_cost_few_look_ups(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await proxied.sign_in()

    async def refused() -> int:
        headers = {"X-Service-Account": ids.to_wire("acct", uuid4())}
        return (await person.get("/api/me", headers=headers)).status_code

    with counted_statements(monkeypatch) as statements:
        assert set(await asyncio.gather(*[refused() for _ in range(200)])) == {403}
    assert len([text for text in statements if "members" in text]) < 100


async def test_a_key_that_is_deleted_while_its_use_is_recorded_is_refused(
    proxied: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction that records it may wait for long, because the database is busy."""
    person = await proxied.sign_in()
    created = await create_key(person)
    record = queries.record_key_use

    async def deleted_before(tx: AccountTransaction, key_id: UUID) -> None:
        async with proxied.owner() as owner:
            await owner.execute("DELETE FROM api_keys WHERE id = $1", key_id)
        await record(tx, key_id)

    monkeypatch.setattr(queries, "record_key_use", deleted_before)
    assert (await ask(proxied, created["secret"], next(_addresses))).status_code == 401
