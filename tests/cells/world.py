"""Two cells and a router in front of them, each a real server on a socket."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from rota.auth import compact
from rota.cells.router import Router
from rota.cells.settings import RouterSettings
from rota.dev.stack import Stack
from tests.assertions import API_VERSION, MOMENT
from tests.service import Person, Service, free_port, serving

NAMES = ("east", "west")


@dataclass
class World:
    """`router` is a client of the router with the methods of a service, but without a database."""

    stack: Stack
    router: Service
    cells: dict[str, Service]
    app: Router

    async def person_of(self, cell: str) -> Person:
        """A new person whose account is in this cell."""
        while True:
            person = await self.router.sign_in()
            if cell_of(person) == cell:
                return person


def cell_of(person: Person) -> str:
    """The cell that a session token names."""
    name = compact.parse(person.token).claims["cell"]
    assert isinstance(name, str)
    return name


def assert_refused(response: httpx.Response, status: int, code: str) -> None:
    """An error of the router itself. It counts no requests, so it has no headers about limits."""
    assert response.status_code == status, (response.status_code, response.text)
    error = response.json()["error"]
    assert (error["code"], MOMENT.fullmatch(error["timestamp"]) is not None) == (code, True)
    assert error["message"]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["api-version"] == API_VERSION
    assert response.headers["x-request-id"]
    assert "ratelimit-limit" not in response.headers


def address(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}"


@asynccontextmanager
async def started_cell(
    stack: Stack, name: str, public_url: str, *, variant: str = "a", **changes: Any
) -> AsyncIterator[Service]:
    async with Service.start(
        stack,
        variant=variant,
        name=f"cell_{name}_{variant}",
        cell=name,
        public_url=public_url,
        trusted_proxies=("127.0.0.1",),
        **changes,
    ) as started:
        yield started


@asynccontextmanager
async def started_router(
    stack: Stack, cells: Mapping[str, Service | str], port: int | None = None, **changes: Any
) -> AsyncIterator[tuple[Service, Router]]:
    port = port or free_port()
    urls = {
        name: address(cell) if isinstance(cell, Service) else cell for name, cell in cells.items()
    }
    settings = RouterSettings(
        env="test", port=port, public_url=f"http://127.0.0.1:{port}", cells=urls, **changes
    )
    app = Router(settings)
    client = httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=30, limits=httpx.Limits(max_connections=200)
    )
    async with app, serving(app, settings), client as http:
        yield Service(stack, settings, http), app


@asynccontextmanager
async def two_cells(
    stack: Stack, variant: str = "a", names: Sequence[str] = NAMES, **changes: Any
) -> AsyncIterator[World]:
    port = free_port()
    async with AsyncExitStack() as exits:
        cells = {
            name: await exits.enter_async_context(
                started_cell(stack, name, f"http://127.0.0.1:{port}", variant=variant, **changes)
            )
            for name in names
        }
        router, app = await exits.enter_async_context(started_router(stack, cells, port))
        yield World(stack, router, cells, app)
