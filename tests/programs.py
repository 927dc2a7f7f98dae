"""People, keys and fixtures for the tests of the endpoints for programs: MCP and A2A.

The `conftest.py` of each imports the fixtures, and adds the `runner` that they use.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from tests.auth.program_realm import Realm
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted
from tests.service import Person, Service
from tests.tasks.world import HIGHEST_TIER

PROGRAM = ["tasks:read", "tasks:write", "agents:read"]
# An origin whose pages can use the service of these tests.
ALLOWED = "https://app.example.com"


async def new_key(person: Person, scopes: Sequence[str] | None = tuple(PROGRAM)) -> str:
    body: dict[str, Any] = {"name": "A program"}
    if scopes is not None:
        body["scopes"] = list(scopes)
    answer = await person.post("/api/keys", body)
    assert answer.status_code == 201, answer.text
    secret: str = answer.json()["secret"]
    return secret


async def signed_in(service: Service) -> Person:
    """A person with a new account of the highest tier, whose rate limit allows many requests."""
    person = await service.sign_in()
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $2 WHERE id = $1",
            person.user_id,
            HIGHEST_TIER[service.variant],
        )

    async def tier() -> str:
        shown: str = (await person.get("/api/me")).json()["effectiveTier"]
        return shown.lower()

    # The service looks a session up again after half a second.
    await until(tier, lambda seen: seen == HIGHEST_TIER[service.variant])
    return person


def assert_challenge(realm: Realm, answer: httpx.Response) -> None:
    """The response says where to get a token for the endpoint."""
    url = f"{realm.service.settings.public_url}/.well-known/oauth-protected-resource{realm.path}"
    assert f'resource_metadata="{url}"' in answer.headers["WWW-Authenticate"]


async def assert_metadata(realm: Realm, path: str) -> None:
    answer = await realm.service.http.get(f"/.well-known/oauth-protected-resource{path}")
    assert answer.json() == {
        "resource": realm.audience,
        "resource_name": "Rota",
        "authorization_servers": [realm.provider.issuer],
        "scopes_supported": PROGRAM,
        "bearer_methods_supported": ["header"],
    }


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture
def office(runner: Runner) -> Service:
    return runner.service


@pytest.fixture
async def person(office: Service) -> Person:
    return await signed_in(office)


@pytest.fixture
async def key(person: Person) -> str:
    """The secret of a key that can do what programs can do."""
    return await new_key(person)


@pytest.fixture
async def somebody(endpoints: Service) -> Person:
    """A user of a service without a worker."""
    return await endpoints.sign_in()


@pytest.fixture
async def secret(somebody: Person) -> str:
    return await new_key(somebody)
