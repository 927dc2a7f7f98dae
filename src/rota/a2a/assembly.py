"""Builds the A2A agent and its routes from parts of the service.

The SDK of the protocol is an optional dependency. Without it, the paths say what to install. It is
imported for the first request: it needs as long as a third of the service, and 30 MB.
"""

import asyncio
import importlib.util
import logging
from collections.abc import Callable

from fastapi import APIRouter
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send

from rota.agents.access import AgentAccess
from rota.agents.catalog import Catalog
from rota.auth.access_tokens import AccessTokens
from rota.auth.authenticator import Authenticator
from rota.auth.issuers import Issuers
from rota.auth.program_endpoints import METADATA_ROOT, ProgramEndpoint
from rota.auth.routing import public_router
from rota.events.stream import Streams
from rota.platform.db import Database
from rota.platform.errors import NotFound
from rota.platform.settings import Settings
from rota.tasks.service import Tasks

PATH = "/a2a"
CARD_PATH = "/.well-known/agent-card.json"
METADATA_PATH = METADATA_ROOT + PATH


class NotInstalled(NotFound):
    def __init__(self) -> None:
        super().__init__(
            "A2A is not installed on this service. The operator can install it: "
            "pip install 'rota[a2a]', then restart the service."
        )


class A2aAssembly:
    """The agent, who may use it, and its routes."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        authenticator: Authenticator,
        issuers: Issuers,
        tasks: Tasks,
        catalog: Catalog,
        agent_access: AgentAccess,
        streams: Streams,
    ) -> None:
        self._settings = settings
        self._issuers = issuers
        self._tasks = tasks
        self._catalog = catalog
        self._agent_access = agent_access
        self._streams = streams
        url = settings.public_url.rstrip("/") + PATH
        self.credentials = AccessTokens(db, authenticator, issuers, url, settings.cell)

    def routes(self) -> APIRouter:
        if importlib.util.find_spec("a2a") is None:
            return _routes_without_sdk()
        router = public_router("A2A")
        router.routes.append(LazyRoutes(self._build))
        return router

    def _build(self) -> APIRouter:
        # What imports the SDK.
        from rota.a2a.cards import Cards
        from rota.a2a.creating import Creating
        from rota.a2a.handler import Handler
        from rota.a2a.listing import Listing
        from rota.a2a.results import Presenter
        from rota.a2a.routes import a2a_routes
        from rota.tasks.following import Following

        # It logs what clients send. Edge logs requests, and errors are logged where they happen.
        logging.getLogger("a2a").setLevel(logging.CRITICAL)
        settings = self._settings
        cards = Cards(settings.public_url, self._issuers.names)
        following = Following(self._tasks, self._streams)
        creating = Creating(self._tasks, self._catalog, self._agent_access, following)
        handler = Handler(
            self._tasks,
            creating,
            Listing(self._tasks),
            following,
            Presenter(settings.public_url),
            cards,
            self.credentials,
        )
        return a2a_routes(handler, cards, ProgramEndpoint(PATH, settings), self._issuers)


class LazyRoutes(BaseRoute):
    """All paths of the agent. The first request builds their routes."""

    def __init__(self, build: Callable[[], APIRouter]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._routes: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not _is_own(scope["path"]):
            return Match.NONE, {}
        if self._routes is None:
            return Match.FULL, {}
        # As if the routes were in the list themselves.
        found = [route.matches(scope)[0] for route in self._routes.routes]
        return max(found, key=lambda match: match.value), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._building:
            if self._routes is None:
                # In a thread, so that other requests do not wait for the import.
                built = await asyncio.to_thread(self._build)
                self._routes = Router(built.routes, redirect_slashes=False)
        await self._routes(scope, receive, send)


def _is_own(path: str) -> bool:
    return path in (PATH, CARD_PATH, METADATA_PATH) or path.startswith(f"{PATH}/")


def _routes_without_sdk() -> APIRouter:
    router = public_router("A2A")

    @router.get(CARD_PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    @router.post(PATH, include_in_schema=False)
    @router.get(PATH + "/{path:path}", include_in_schema=False)
    @router.post(PATH + "/{path:path}", include_in_schema=False)
    async def not_installed() -> None:
        raise NotInstalled

    return router
