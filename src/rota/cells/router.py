"""The ASGI application of `rota router`. It has no state that a restart could lose."""

import asyncio
from contextlib import suppress
from typing import Self, cast
from uuid import uuid4

import structlog
from starlette.types import Message, Receive, Scope, Send

from rota.auth.errors import AccessTokenUnknownUser
from rota.cells.cell import Cell, healthy_first
from rota.cells.connection import CellFailed
from rota.cells.destinations import SIGN_INS, Destinations
from rota.cells.exchange import ClientGone, Exchange, Request, exchange
from rota.cells.fetching import ANSWER_S
from rota.cells.finding import MISDIRECTED, find
from rota.cells.own_pages import PATHS, own_pages
from rota.cells.placement import Identity, in_order
from rota.cells.published_keys import KEY_PATHS, PublishedKeys
from rota.cells.settings import RouterSettings
from rota.cells.sign_in import SignIns
from rota.platform.cache import ExpiringCache
from rota.platform.errors import ApiError, Unavailable
from rota.platform.http.cors import Cors, preflight_response
from rota.platform.http.edge import API_VERSION, REFUSAL, VALID_ID
from rota.platform.http.responses import error_response

# How long the cell of an identity is remembered, for programs that send access tokens.
REMEMBER_S = 600
RETRY = {"Retry-After": "5"}

log = structlog.get_logger()


class CellUnavailable(Unavailable):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"Cell {name} of this service, which your request needs, is not available. Try again, "
            "and wait longer after each attempt.",
            headers=RETRY,
        )


class Router:
    def __init__(self, settings: RouterSettings) -> None:
        self.cells = {name: Cell(name, url) for name, url in settings.cells.items()}
        self._destinations = Destinations(self.cells, next(iter(self.cells)))
        self._sign_ins = SignIns(
            self.cells, settings.cells_full, local=settings.env != "production"
        )
        self._keys = PublishedKeys(self.cells)
        self._cors = Cors(settings.cors_origins)
        self._own_pages = own_pages(self.cells, metrics=settings.metrics_port is None)
        self._homes: ExpiringCache[Identity, str] = ExpiringCache(
            max_items=10_000, max_age_s=REMEMBER_S
        )
        self._streams: set[Exchange] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for cell in self.cells.values():
            cell.close()

    def end_streams(self) -> None:
        """Before a shutdown: the clients connect again, to another router."""
        for stream in list(self._streams):
            stream.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        sending = _Sending(send)
        try:
            await self._route(scope, receive, sending)
        except (ClientGone, CellFailed, ApiError) as error:
            if sending.started:
                if isinstance(error, ClientGone):
                    return
                raise  # The server closes the connection, so the client sees that it is incomplete.
            await _refuse(scope, receive, self._readable(scope, send), error)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if REFUSAL in scope:
            raise scope[REFUSAL]
        path: str = scope["path"]
        if scope["method"] == "OPTIONS" and self._cors.is_preflight(
            "OPTIONS", dict(scope["headers"])
        ):
            # Without a cell, so that a page can read the error of the request that follows.
            await preflight_response()(scope, receive, self._readable(scope, send))
            return
        if path in PATHS:
            # As the cells do, HEAD answers wherever GET does. The server leaves the body out.
            method = scope["method"].replace("HEAD", "GET")
            await self._own_pages({**scope, "method": method}, receive, self._readable(scope, send))
            return
        if path in KEY_PATHS and scope["method"] in ("GET", "HEAD"):
            answer = await self._keys.response(path)
            await answer(scope, receive, self._readable(scope, send))
            return
        request = Request(scope, receive)
        if path in SIGN_INS and scope["method"] == "POST":
            await self._sign_ins(request, self._relay, send)
            return
        if named := self._destinations.named(scope["raw_path"].decode("latin-1")):
            name, path = named
            scope = {**scope, "path": path, "raw_path": path.encode("latin-1")}
            await self._forward(name, Request(scope, receive), send)
            return
        found = self._destinations.of(scope)
        if isinstance(found, str):
            await self._forward(found, request, send)
        elif found is not None:
            await self._by_identity(found, request, send)
        else:
            await self._anywhere(request, send)

    def _readable(self, scope: Scope, send: Send) -> Send:
        """Lets pages of configured origins read what the router answers itself. The responses of
        cells have the headers already."""
        added = self._cors.headers(dict(scope["headers"]))

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        return readable

    async def _forward(self, name: str, request: Request, send: Send) -> None:
        try:
            async with exchange(self.cells[name], request) as found:
                await self._relay(found, send)
        except CellFailed:
            raise CellUnavailable(name) from None

    async def _relay(self, found: Exchange, send: Send) -> None:
        if not found.is_stream:
            await found.relay(send)
            return
        with found.cell.streaming():
            self._streams.add(found)
            try:
                await found.relay(send)
            finally:
                self._streams.discard(found)

    async def _anywhere(self, request: Request, send: Send) -> None:
        """Pages, descriptions, and requests without a credential. The first cell that works
        answers, so that the files of a page come from one cell."""
        reads = request.scope["method"] in ("GET", "HEAD") and not request.has_body
        cells = healthy_first(self.cells.values())
        for cell in cells:
            # Only what changes nothing can be sent to another cell after this one got it.
            others = reads and cell is not cells[-1]
            try:
                async with exchange(cell, request, within_s=ANSWER_S if others else None) as found:
                    if others and found.status in (502, 503, 504):
                        cell.suspect()
                        found.end()
                        continue
                    await self._relay(found, send)
                return
            except CellFailed as error:
                if error.reason == "timeout":
                    cell.suspect()
                if cast(_Sending, send).started:
                    raise
                if not (reads or error.reason in ("connect", "busy")):
                    break
        raise Unavailable("The service is not available. Try again.", headers=RETRY)

    async def _by_identity(self, identity: Identity, request: Request, send: Send) -> None:
        """An access token names a person, and only the person's cell knows them."""
        home = self._homes.get(identity)
        if home is None:
            # The cell answers before it reads a body, and only with a token that it has verified.
            found = await find(self.cells, in_order(identity, self.cells), _question(request))
            home = found.home
            if home is not None:
                self._homes.put(identity, home)
            elif found.refusal is not None:
                home = found.refusal.cell  # It says what is wrong.
            elif found.missing:
                raise CellUnavailable(found.missing[0].cell)
            else:
                raise AccessTokenUnknownUser
        try:
            async with exchange(self.cells[home], request) as answer:
                if answer.status == MISDIRECTED:
                    self._homes.drop(identity)
                    answer.end()
                    raise Unavailable("The account has changed. Try again.", headers=RETRY)
                await self._relay(answer, send)
        except CellFailed:
            raise CellUnavailable(home) from None


def _question(request: Request) -> Request:
    """A request without a body, with the same credential and from the same client."""
    kept = (b"authorization", b"host", b"x-forwarded-for")
    headers = [each for each in request.scope["headers"] if each[0] in kept]
    scope = {**request.scope, "method": "GET", "query_string": b"", "headers": headers}
    return Request(scope, request.receive)


class _Sending:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)


async def _refuse(scope: Scope, receive: Receive, send: Send, error: Exception) -> None:
    if REFUSAL in scope:
        # The server could not read the body.
        error = scope[REFUSAL]
    if isinstance(error, ClientGone):
        return
    if not isinstance(error, ApiError):
        error = Unavailable("The service is not available. Try again.")
    response = error_response(scope["path"], error)
    sent = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    response.headers["X-Request-Id"] = sent if VALID_ID.fullmatch(sent) else uuid4().hex
    response.headers["Api-Version"] = API_VERSION
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    with suppress(asyncio.CancelledError):
        await response(scope, receive, send)
