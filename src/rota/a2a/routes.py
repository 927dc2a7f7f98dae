"""The endpoints of both bindings, the agent cards, and the metadata that tells clients how to get a
token. The protocol defines the bodies, so none is part of the OpenAPI description.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers.response_helpers import (
    agent_card_to_dict,
    build_error_response,
)
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, VERSION_HEADER
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.a2a.assembly import PATH
from rota.a2a.cards import Cards
from rota.a2a.envelope import NotJson, check_version, params_of, read_object, version_of
from rota.a2a.errors import REFUSAL, protocol_error, rest_payload
from rota.a2a.handler import REQUEST, SENT, Handler
from rota.auth.issuers import Issuers
from rota.auth.program_endpoints import ProgramEndpoint
from rota.auth.routing import public_router
from rota.limits.guard import RequestLimit
from rota.platform.errors import ApiError, FieldError, UnsupportedMediaType, ValidationFailed
from rota.platform.http.mounted import NamedRoute, replayed
from rota.platform.http.responses import json_response

# Where a request keeps the error of the service, for the response.
_REFUSALS = "rota.a2a.refusals"
# And here the parameters of its operation, as the client has sent them.
_SENT = "rota.a2a.sent"
_CACHED = "public, max-age=300"


class Contexts(ServerCallContextBuilder):
    """What the operations know of a request."""

    def build(self, request: Request) -> ServerCallContext:
        sent = request.scope.get(_SENT, {})
        tenant = sent.get("tenant")
        return ServerCallContext(
            # The SDK takes it from the path, or from the parameters of JSON-RPC.
            tenant=tenant if isinstance(tenant, str) else "",
            state={
                "headers": {VERSION_HEADER: version_of(request)},
                REQUEST: request,
                SENT: sent,
                REFUSAL: request.scope.setdefault(_REFUSALS, []),
            },
        )


def _check(program: ProgramEndpoint, scope: Scope) -> None:
    """Checks what all requests have in common."""
    program.check_credential(scope)
    if "\0" in scope["path"] or b"%00" in scope["query_string"]:
        # No database can store it, and bodies cannot have it either.
        raise ValidationFailed.of(FieldError("", "The URL contains a NUL character."))
    program.check_origin(dict(scope["headers"]))


class Endpoint:
    """Passes an admitted request with a valid body to an endpoint of the SDK."""

    def __init__(self, app: ASGIApp, program: ProgramEndpoint, *, rpc: bool) -> None:
        self._app = app
        self._program = program
        # Whether it is JSON-RPC. Its responses always have the status 200.
        self._rpc = rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _check(self._program, scope)
        request = Request(scope, receive)
        body = await request.body() if scope["method"] == "POST" else b""
        sent: dict[str, Any] = dict(request.query_params)
        try:
            check_version(request)
            if body or self._rpc:
                sent = read_object(request, body)
            scope[_SENT] = params_of(sent) if self._rpc else sent
        except ApiError as error:
            await self._refused(error, sent.get("id"))(scope, receive, send)
            return
        if not self._rpc:
            send = _with_own_errors(scope, receive, send)
        await self._app(scope, replayed(body, receive), send)

    def _refused(self, error: ApiError, call_id: Any) -> Response:
        if not self._rpc:
            return json_response(error.status, rest_payload(error))
        shown = (
            JSONParseError(message=error.message)
            if isinstance(error, NotJson)
            else protocol_error(error)
        )
        # Only these can be the ID of a call.
        is_id = isinstance(call_id, str | int) and not isinstance(call_id, bool)
        known = call_id if is_id else None
        status = error.status if isinstance(error, UnsupportedMediaType) else 200
        return json_response(status, build_error_response(known, shown))


def _with_own_errors(scope: Scope, receive: Receive, send: Send) -> Send:
    """Replaces a response of the SDK that stands for an error of this service: the SDK knows only
    the statuses of the protocol's errors."""
    refusals: list[ApiError] = scope.setdefault(_REFUSALS, [])
    own = False

    async def replacing(message: Message) -> None:
        nonlocal own
        if message["type"] == "http.response.start" and refusals:
            own = True
            error = refusals[0]
            # The guard adds the header for its own limit.
            headers = {} if isinstance(error, RequestLimit) else dict(error.headers or {})
            await json_response(error.status, rest_payload(error), headers)(scope, receive, send)
        elif not own:
            await send(message)

    return replacing


def a2a_routes(
    handler: Handler, cards: Cards, program: ProgramEndpoint, issuers: Issuers
) -> APIRouter:
    router = public_router("A2A")
    program.add_metadata(router, issuers)
    contexts = Contexts()

    async def agent_card(request: Request) -> Response:
        _check(program, request.scope)
        context = contexts.build(request)
        context.tenant = request.path_params["tenant"]
        try:
            card = agent_card_to_dict(await handler.card(context))
        except RequestLimit as refused:
            return refused.response
        return json_response(200, card, {"Cache-Control": "private, max-age=60"})

    # Clients that have the URL of the endpoint look at the second path.
    for path in (AGENT_CARD_WELL_KNOWN_PATH, PATH + AGENT_CARD_WELL_KNOWN_PATH):
        shown = create_agent_card_routes(cards.public(), card_url=path, cache_control=_CACHED)
        router.routes.extend(_route(path, each.endpoint, ["GET"]) for each in shown)
    own = f"{PATH}/{{tenant}}{AGENT_CARD_WELL_KNOWN_PATH}"
    router.routes.append(_route(own, agent_card, ["GET"]))
    for rpc in create_jsonrpc_routes(handler, PATH, context_builder=contexts):
        endpoint = Endpoint(rpc.app, program, rpc=True)
        # Some clients add a slash to the URL of the card.
        for path in (rpc.path, f"{rpc.path}/"):
            router.routes.append(_route(path, endpoint, ["POST"]))
    rest = create_rest_routes(handler, context_builder=contexts)
    for path, route in _flat(rest, PATH):
        endpoint = Endpoint(route.app, program, rpc=False)
        router.routes.append(_route(path, endpoint, route.methods or ()))
    return router


def _route(path: str, endpoint: Any, methods: Iterable[str]) -> NamedRoute:
    return NamedRoute(path, endpoint, methods=list(methods), include_in_schema=False)


def _flat(routes: Iterable[BaseRoute], prefix: str) -> Iterator[tuple[str, Route]]:
    """Each route with its whole path, also those that the SDK mounts below the tenant."""
    for route in routes:
        if isinstance(route, Mount):
            yield from _flat(route.routes, prefix + route.path)
        elif isinstance(route, Route):
            yield prefix + route.path, route
