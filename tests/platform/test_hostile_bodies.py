"""Hostile bodies are refused quickly, and the process survives.

The routes come from the OpenAPI description, so new routes are covered automatically.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from statistics import median
from typing import Any

import httpx
import orjson
import pytest

from rota.platform import json
from tests.assertions import assert_error
from tests.platform.bodies import field_floods, hostile_bodies
from tests.service import Person, Service

JSON = {"Content-Type": "application/json"}
BODIES = hostile_bodies()
MAX_S = 0.1


def routes_with_bodies(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The method, the path with an ID, and the schema of the body, for each such route."""
    for path, item in description["paths"].items():
        for method, operation in item.items():
            if "requestBody" in operation:
                yield method, path.replace("{id}", f"task_{0:032x}"), operation["requestBody"]


def schema_of(description: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = body["content"]["application/json"]["schema"]
    schema = schema.get("anyOf", [schema])[0]
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = description["components"]["schemas"].get(name, schema)
    return found


class Attack:
    """A client with an open connection and a rate limit that is high enough for the tests."""

    def __init__(self, http: httpx.AsyncClient, person: Person) -> None:
        self._http = http
        self._headers = person.auth | JSON

    async def send(self, method: str, path: str, content: Any) -> httpx.Response:
        return await self._http.request(method, path, content=content, headers=self._headers)

    async def timed(self, method: str, path: str, body: bytes) -> tuple[httpx.Response, float]:
        """The response and its CPU time: the median of three if the first was too long.

        Client and server share a thread, so the thread's CPU time shows how long a request blocks
        the process, independent of the load on the machine. It includes the client's work.
        """
        times: list[float] = []
        while not times or (times[0] > MAX_S and len(times) < 3):
            # A 413 closes the connection. This request opens a new one.
            await self._http.get("/health/live")
            started = time.thread_time()
            response = await self.send(method, path, body)
            times.append(time.thread_time() - started)
        return response, median(times)


@pytest.fixture(scope="module")
async def attack(probed: Service) -> AsyncIterator[Attack]:
    person = await probed.sign_in()
    async with probed.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = 'enterprise' WHERE id = $1", person.user_id
        )
    async with httpx.AsyncClient(base_url=probed.http.base_url, timeout=30) as http:
        yield Attack(http, person)


@pytest.fixture(scope="module")
async def description(probed: Service) -> dict[str, Any]:
    found: dict[str, Any] = (await probed.http.get("/openapi.json")).json()
    return found


def _check(response: httpx.Response, took_s: float, case: str) -> None:
    assert 400 <= response.status_code < 500, (case, response.status_code, response.text[:500])
    assert response.json()["error"]["message"], case
    assert len(response.content) < 10_000, case
    assert took_s < MAX_S, (case, took_s)


@pytest.mark.timed
@pytest.mark.parametrize("name", BODIES)
async def test_every_route_refuses_a_hostile_body_quickly(
    attack: Attack, description: dict[str, Any], name: str
) -> None:
    routes = list(routes_with_bodies(description))
    assert ("post", "/api/keys") in {(method, path) for method, path, _ in routes}
    for method, path, body in routes:
        if name == "empty" and not body.get("required"):
            continue
        response, took_s = await attack.timed(method, path, BODIES[name])
        _check(response, took_s, f"{name} to {method} {path}")


@pytest.mark.timed
async def test_a_field_with_thousands_of_errors_is_refused_quickly(
    attack: Attack, description: dict[str, Any]
) -> None:
    for method, path, body in routes_with_bodies(description):
        for name, value in field_floods(schema_of(description, body)):
            content = orjson.dumps(value)
            response, took_s = await attack.timed(method, path, content)
            _check(response, took_s, f"{name} to {method} {path}")


@pytest.mark.timed
@pytest.mark.parametrize(
    "name", ["one byte above the limit", "200,000 keys", "objects 100,000 deep"]
)
async def test_hostile_bodies_in_chunks_are_refused(
    attack: Attack, description: dict[str, Any], name: str
) -> None:
    async def chunks(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    for method, path, _ in routes_with_bodies(description):
        response = await attack.send(method, path, chunks(BODIES[name]))
        expected = (413, "PAYLOAD_TOO_LARGE") if "limit" in name else (400, "VALIDATION_ERROR")
        assert_error(response, *expected)


@pytest.mark.timed
async def test_other_callers_are_served_during_an_attack(attack: Attack, probed: Service) -> None:
    names = (
        "a field of a million zeros",
        "200,000 keys",
        "arrays 100,000 deep",
        "15,000 deep arrays",
    )
    flood = asyncio.gather(*[attack.send("post", "/api/keys", BODIES[n]) for n in names * 5])
    while not flood.done():
        assert (await probed.http.get("/health/live")).status_code == 200
    assert {response.status_code for response in await flood} == {400}


@pytest.mark.timed
@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": "\\u0041\\ud83d\\ude00"}', {"a": "A😀"}),
        (b'{"a": "\\\\u0000"}', {"a": "\\u0000"}),
        (b"[" * 64 + b"]" * 64, None),
        (b'{"a": "' + b"[,{" * 100_000 + b'"}', {"a": "[,{" * 100_000}),
        (b'{"a": "\\"' + b",[" * 20_000 + b'"}', {"a": '"' + ",[" * 20_000}),
        (b"[" + b"1," * 9_998 + b"1]", [1] * 9_999),
        (
            b' {"n": [0, -0, 1.5, 1e3, 9007199254740993]}\n',
            {"n": [0, 0, 1.5, 1e3, 9007199254740993]},
        ),
        (b"9" * 400, int("9" * 400)),
    ],
)
def test_unusual_but_valid_json_is_accepted(raw: bytes, value: object) -> None:
    read = json.loads(raw)
    assert value is None or read == value


@pytest.mark.timed
@pytest.mark.parametrize("raw", [b"[" + b"1," * 10_000 + b"1]", b"[" * 65 + b"]" * 65])
def test_json_just_above_the_limits_is_refused(raw: bytes) -> None:
    with pytest.raises(json.InvalidJson):
        json.loads(raw)
