"""Connects the demonstration tool servers for the people who can sign in, through the public API.

So the first task of a person can use tools. It happens once for each data directory.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx

from rota.dev import idp_page
from rota.dev.demo import PEOPLE, SERVERS
from rota.dev.processes import ComponentState, Status
from rota.dev.stack import Stack

NAME = "tools"
# Names the service and the tool servers that are connected.
MARK = "demo-connected"
TIMEOUT_S = 20.0
# What the list of sessions shows.
HEADERS = {"User-Agent": "rota dev"}


class Refused(Exception):
    """The service answered with an error."""


async def prepare(
    stack: Stack, service_url: str, on_change: Callable[[ComponentState], None]
) -> None:
    """Connects the servers, if both sides are there. A failure does not stop `rota dev`."""
    at = stack.endpoints
    if not at.demo_url or not at.issuer_url:
        return
    mark, done = stack.directory.path / MARK, f"{at.issuer_url} {at.demo_url}"
    if mark.exists() and mark.read_text() == done:
        return
    log, began = stack.directory.log(NAME), time.monotonic()
    on_change(ComponentState(NAME, Status.STARTING, log))
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, headers=HEADERS) as client:
            await asyncio.gather(
                *[_prepare(client, service_url, at.issuer_url, at.demo_url, sub) for sub in PEOPLE]
            )
    except (httpx.HTTPError, Refused, ValueError, KeyError) as error:
        log.write_text(f"{error!r}\n")
        detail = "the demonstration tool servers are not connected"
        on_change(ComponentState(NAME, Status.FAILED, log, detail=detail))
        return
    mark.write_text(done)
    took_s = time.monotonic() - began
    detail = f"{', '.join(SERVERS)} for {', '.join(PEOPLE)}"
    on_change(ComponentState(NAME, Status.DONE, log, detail=detail, took_s=took_s))


async def _prepare(
    client: httpx.AsyncClient, service_url: str, issuer_url: str, demo_url: str, subject: str
) -> None:
    session = await sign_in(client, service_url, issuer_url, subject)
    await connect(session, demo_url)


class Session:
    """A signed-in person."""

    def __init__(self, client: httpx.AsyncClient, service_url: str, token: str) -> None:
        self._client = client
        self._url = service_url
        self.headers = {"Authorization": f"Bearer {token}"}

    async def get(self, path: str) -> Any:
        answer = await self._client.get(f"{self._url}{path}", headers=self.headers)
        return _checked(answer)

    async def post(self, path: str, body: Any = None, allowed: tuple[int, ...] = ()) -> Any:
        answer = await self._client.post(f"{self._url}{path}", headers=self.headers, json=body)
        return _checked(answer, allowed)


def _checked(answer: httpx.Response, allowed: tuple[int, ...] = ()) -> Any:
    if answer.is_success or answer.status_code in allowed:
        return answer.json()
    raise Refused(f"{answer.request.method} {answer.url}: {answer.status_code} {answer.text[:500]}")


async def sign_in(
    client: httpx.AsyncClient, service_url: str, issuer_url: str, subject: str
) -> Session:
    email = f"{subject}@example.test"
    person = {"sub": subject, "email": email, "name": idp_page.PEOPLE[email]}
    given = _checked(await client.post(f"{issuer_url}/dev/token", json=person))
    body = {"idToken": given["idToken"]}
    answer = _checked(await client.post(f"{service_url}/api/auth/session", json=body))
    return Session(client, service_url, answer["token"])


async def connect(session: Session, base_url: str) -> None:
    """Connects each server that is not connected yet. 409 means that another one has its name."""
    for name in SERVERS:
        body = {"name": name, "url": f"{base_url}/{name}/mcp"}
        await session.post("/api/mcp", body, allowed=(409,))
