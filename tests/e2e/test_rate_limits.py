"""Rate limits as clients see them: which window a request counts in, and the response headers."""

import asyncio
from functools import partial
from itertools import count
from uuid import uuid4

import httpx
import pytest

from rota.dev.stack import Stack
from rota.limits.window import Window
from tests.assertions import assert_error, assert_headers
from tests.platform.probe import AI_PREFIX
from tests.service import Person, Service

AI = f"{AI_PREFIX}/think"
HIGHEST = {"a": ("enterprise", 6000, 4800), "b": ("business", 6000, 4800)}
_addresses = (f"198.51.{n // 250}.{n % 250 + 1}" for n in count())


async def times(number: int, send: object, *arguments: object) -> list[httpx.Response]:
    """Sends this number of requests, at most 20 at a time."""
    room = asyncio.Semaphore(20)

    async def one() -> httpx.Response:
        async with room:
            response: httpx.Response = await send(*arguments)  # type: ignore[operator]
        return response

    return list(await asyncio.gather(*[one() for _ in range(number)]))


def statuses(responses: list[httpx.Response]) -> dict[int, int]:
    found = [response.status_code for response in responses]
    return {status: found.count(status) for status in set(found)}


async def remaining(person: Person) -> int:
    """The remaining requests in the account's window after this request."""
    return int((await person.get("/api/me")).headers["RateLimit-Remaining"])


def assert_refused(response: httpx.Response) -> None:
    assert response.status_code == 429
    assert_headers(response)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["RateLimit-Remaining"] == "0"
    assert response.headers["Retry-After"] == response.headers["RateLimit-Reset"]
    body = response.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"message", "code"}
    assert body["error"]["code"] == "RATE_LIMIT_EXCEEDED"
    assert body["error"]["message"]


async def test_the_301st_ai_request_is_refused_while_other_requests_pass(
    each: Service,
) -> None:
    ada = await each.sign_in()
    responses = await times(300, ada.get, AI)
    assert statuses(responses) == {200: 300}
    for response in responses:
        assert response.headers["RateLimit-Limit"] == "300"
        assert response.headers["RateLimit-Policy"] == "600;w=60, 300;w=60"
    assert min(int(a.headers["RateLimit-Remaining"]) for a in responses) == 0

    refused = await ada.get(AI)
    assert_refused(refused)
    assert refused.headers["RateLimit-Limit"] == "300"

    other = await ada.get("/api/me")
    assert other.status_code == 200
    assert other.headers["RateLimit-Limit"] == "600"
    assert other.headers["RateLimit-Policy"] == "600;w=60"
    # Signing in sent one request. The refused request counts in no window.
    assert int(other.headers["RateLimit-Remaining"]) == 600 - 1 - 300 - 1
    assert_refused(await ada.get(AI))


async def test_the_601st_request_is_refused_on_every_path_with_a_limit(
    limited: Service,
) -> None:
    ada, bob = await limited.sign_in(), await limited.sign_in()
    assert statuses(await times(599, ada.get, "/api/me")) == {200: 599}
    # The limit is checked before the path, the method and the body.
    for method, path in (("GET", "/api/me"), ("GET", AI), ("GET", "/nothing"), ("PUT", "/api/me")):
        assert_refused(await ada.request(method, path))
    assert_refused(await ada.request("POST", "/api/keys", content=b"\xff"))
    for path in ("/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs"):
        assert (await ada.get(path)).status_code == 200
    assert (await bob.get("/api/me")).status_code == 200


async def test_all_keys_and_sessions_of_an_account_share_its_window(limited: Service) -> None:
    ada = await limited.sign_in()
    again = await limited.sign_in(ada.subject)
    key = (await ada.post("/api/keys", {"name": "one"})).json()["secret"]
    other = (await again.post("/api/keys", {"name": "two"})).json()["secret"]
    before = await remaining(ada)
    with_key, with_other = (Person(limited, ada.subject, secret) for secret in (key, other))
    for person in (ada, again, with_key, with_other):
        before -= 1
        assert await remaining(person) == before


async def test_requests_without_a_valid_token_do_not_count_in_an_accounts_window(
    limited: Service,
) -> None:
    ada = await limited.sign_in()
    before = await remaining(ada)
    address = next(_addresses)
    head, _, signature = ada.token.rpartition(".")
    forged = f"{head}.{signature[::-1]}"
    key = (await ada.post("/api/keys", {"name": "one"})).json()["secret"]
    tokens = (None, forged, "rota_" + "x" * 38, key[:-1] + "_", "nonsense")
    remainders = []
    for token in tokens:
        headers = {"X-Forwarded-For": address}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        response = await limited.http.get("/api/me", headers=headers)
        assert_error(response, 401, "AUTHENTICATION_ERROR", "/api/me")
        assert response.headers["RateLimit-Limit"] == "600"
        remainders.append(int(response.headers["RateLimit-Remaining"]))
    assert remainders == list(range(599, 599 - len(tokens), -1))
    # Creating the key, and this request.
    assert await remaining(ada) == before - 2


async def test_a_request_for_another_users_account_does_not_count_in_its_window(
    limited: Service,
) -> None:
    ada, bob = await limited.sign_in(), await limited.sign_in()
    before = await remaining(ada)
    account = f"acct_{ada.user_id.hex}"
    headers = {"X-Service-Account": account, "X-Forwarded-For": next(_addresses)}
    of_bob = await remaining(bob)
    refused = await bob.get("/api/me", headers=headers)
    assert refused.status_code == 403
    assert await remaining(ada) == before - 1
    # Bob's credential is valid, so the request counts toward his own account.
    assert int(refused.headers["RateLimit-Remaining"]) == of_bob - 1
    assert await remaining(bob) == of_bob - 2


async def test_a_key_that_names_another_account_counts_toward_its_own(limited: Service) -> None:
    ada = await limited.sign_in()
    key = (await ada.post("/api/keys", {"name": "one"})).json()["secret"]
    before = await remaining(ada)
    headers = {"X-Service-Account": f"acct_{uuid4().hex}"}
    refused = await Person(limited, ada.subject, key).get("/api/me", headers=headers)
    assert refused.status_code == 403
    assert int(refused.headers["RateLimit-Remaining"]) == before - 1


async def test_a_client_without_a_token_has_the_lowest_limit(limited: Service) -> None:
    headers = {"X-Forwarded-For": next(_addresses)}

    async def ask() -> httpx.Response:
        return await limited.http.get("/api/auth/config", headers=headers)

    assert statuses(await times(600, ask)) == {200: 600}
    assert_refused(await ask())
    # Unknown paths are limited too.
    assert_refused(await limited.http.get("/nothing", headers=headers))
    fresh = {"X-Forwarded-For": next(_addresses)}
    assert (await limited.http.get("/api/auth/config", headers=fresh)).status_code == 200


async def test_forged_addresses_before_the_proxys_own_do_not_give_a_new_window(
    limited: Service,
) -> None:
    address = next(_addresses)
    remainders = []
    for forged in ("203.0.113.1", "203.0.113.2, 203.0.113.3", "nonsense", "127.0.0.1", ""):
        response = await limited.http.get(
            "/api/auth/config", headers={"X-Forwarded-For": f"{forged}, {address}"}
        )
        remainders.append(int(response.headers["RateLimit-Remaining"]))
    assert remainders == [599, 598, 597, 596, 595]


async def test_without_a_trusted_proxy_forwarded_addresses_are_ignored(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, a slow response of Redis would count as an outage.
    monkeypatch.setattr("rota.composition.Window", partial(Window, timeout_s=2.0))
    async with Service.start(stack, variant="a", name="untrusting") as service:
        remainders = []
        for number in range(5):
            headers = {"X-Forwarded-For": f"203.0.113.{number}", "Forwarded": f"for=1.1.1.{number}"}
            response = await service.http.get("/api/auth/config", headers=headers)
            remainders.append(int(response.headers["RateLimit-Remaining"]))
        assert remainders == [599, 598, 597, 596, 595]


@pytest.mark.timed
async def test_a_new_tier_changes_the_limit_within_a_second(each: Service) -> None:
    ada = await each.sign_in()
    tier, ceiling, ai_ceiling = HIGHEST[each.variant]
    assert (await ada.get("/api/me")).headers["RateLimit-Limit"] == "600"
    async with each.owner() as connection:
        await connection.execute("UPDATE accounts SET tier = $1 WHERE id = $2", tier, ada.user_id)
    async with asyncio.timeout(1):
        while (response := await ada.get("/api/me")).headers["RateLimit-Limit"] != str(ceiling):
            await asyncio.sleep(0.02)
    assert response.headers["RateLimit-Policy"] == f"{ceiling};w=60"
    ai_response = await ada.get(AI)
    assert ai_response.headers["RateLimit-Policy"] == f"{ceiling};w=60, {ai_ceiling};w=60"
    # Earlier requests still count.
    assert int(response.headers["RateLimit-Remaining"]) < ceiling - 2


@pytest.mark.timed
async def test_processes_share_the_windows(limited: Service) -> None:
    async with limited.process() as second:
        ada = await limited.sign_in(f"both-{uuid4().hex}")
        there = Person(second, ada.subject, ada.token)
        # The second process has a connection to Redis.
        await there.get("/api/me")
        before = await remaining(ada)
        assert await remaining(there) == before - 1
        assert await remaining(ada) == before - 2
