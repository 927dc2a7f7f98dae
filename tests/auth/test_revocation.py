"""A revocation in one process takes effect in all others within a second, with or without Redis."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from pydantic import SecretStr

from rota.auth import rotation
from rota.dev.stack import Stack
from rota.platform.crypto import Vault
from tests.auth.waiting import seconds_until
from tests.service import Person, Service

WITHIN_S = 1.0


@dataclass
class Pair:
    """Two processes on one database. The second has no Redis."""

    first: Service
    second: Service

    async def in_second(self, bearer: str) -> httpx.Response:
        return await self.second.http.get("/api/me", headers={"Authorization": f"Bearer {bearer}"})

    async def warm(self, bearer: str) -> None:
        """Makes the second process cache the caller."""
        for _ in range(3):
            assert (await self.in_second(bearer)).status_code == 200

    async def seconds_until_refused(self, bearer: str) -> float:
        async def refused() -> bool:
            response = await self.in_second(bearer)
            assert response.status_code in (200, 401), response.text
            return response.status_code == 401

        return await seconds_until(refused)


@pytest.fixture(scope="module")
async def pair(stack: Stack) -> AsyncIterator[Pair]:
    unreachable = SecretStr("redis://127.0.0.1:1/0")
    async with (
        Service.start(stack, variant="a", name="auth_pair") as first,
        first.process(redis_url=unreachable) as second,
    ):
        ready = (await second.http.get("/health/ready")).json()
        assert ready["checks"]["redis"] != "ok"
        yield Pair(first, second)


@pytest.fixture
async def person(pair: Pair) -> Person:
    return await pair.first.sign_in()


@pytest.mark.timed
async def test_a_logout_takes_effect_in_the_other_process(pair: Pair, person: Person) -> None:
    await pair.warm(person.token)
    assert (await person.post("/api/auth/logout")).status_code == 200
    assert (await person.get("/api/me")).status_code == 401
    assert await pair.seconds_until_refused(person.token) < WITHIN_S


@pytest.mark.timed
async def test_a_logout_revokes_every_token_of_the_session(pair: Pair, person: Person) -> None:
    refreshed = (await person.post("/api/auth/refresh")).json()["token"]
    await pair.warm(person.token)
    await pair.warm(refreshed)
    assert (await person.post("/api/auth/logout")).status_code == 200
    assert await pair.seconds_until_refused(refreshed) < WITHIN_S
    assert await pair.seconds_until_refused(person.token) < WITHIN_S


@pytest.mark.timed
async def test_ending_another_session_takes_effect_in_the_other_process(
    pair: Pair, person: Person
) -> None:
    other = await pair.first.sign_in(person.subject)
    await pair.warm(other.token)
    sessions = (await person.get("/api/auth/sessions")).json()["sessions"]
    [session] = [each["id"] for each in sessions if not each["current"]]
    assert (await person.delete(f"/api/auth/sessions/{session}")).status_code == 200
    assert await pair.seconds_until_refused(other.token) < WITHIN_S
    assert (await pair.in_second(person.token)).status_code == 200


@pytest.mark.timed
async def test_deleting_a_key_takes_effect_in_the_other_process(pair: Pair, person: Person) -> None:
    created = (await person.post("/api/keys", {"name": "ci"})).json()
    await pair.warm(created["secret"])
    assert (await person.delete(f"/api/keys/{created['key']['id']}")).status_code == 200
    headers = {"Authorization": f"Bearer {created['secret']}"}
    assert (await pair.first.http.get("/api/me", headers=headers)).status_code == 401
    assert await pair.seconds_until_refused(created["secret"]) < WITHIN_S


@pytest.mark.timed
async def test_an_expired_key_is_refused_in_every_process(pair: Pair, person: Person) -> None:
    created = (await person.post("/api/keys", {"name": "ci"})).json()
    await pair.warm(created["secret"])
    async with pair.first.owner() as connection:
        await connection.execute(
            "UPDATE api_keys SET expires_at = now() WHERE account_id = $1", person.user_id
        )
    assert await pair.seconds_until_refused(created["secret"]) < WITHIN_S


async def test_signing_in_works_without_redis(pair: Pair) -> None:
    person = await pair.second.sign_in()
    assert (await person.get("/api/me")).headers["RateLimit-Limit"] == "600"


@pytest.mark.timed
async def test_a_retired_signing_key_is_refused_in_every_process(
    pair: Pair, person: Person
) -> None:
    await pair.warm(person.token)
    vault = Vault(pair.first.settings.secret_key_bytes)
    new = await rotation.rotate(pair.first.database_url, vault, overlap_s=0)
    assert await pair.seconds_until_refused(person.token) < WITHIN_S

    async def publishes_the_new_key() -> bool:
        published = (await pair.first.http.get("/.well-known/jwks.json")).json()["keys"]
        return [key["kid"] for key in published] == [new]

    assert await seconds_until(publishes_the_new_key) < WITHIN_S
    await pair.warm((await pair.first.sign_in()).token)
