"""The endpoint of the MCP server, and the metadata that tells clients how to get a token.

The protocol defines the bodies, so neither is part of the OpenAPI description.
"""

from collections.abc import Collection
from typing import Any

from fastapi import APIRouter
from mcp_types import PARSE_ERROR
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from rota.auth.access_tokens import SCOPES, check_program
from rota.auth.issuers import Issuers
from rota.auth.routing import caller_of, public_router
from rota.mcp_server.server import PATH, McpServer
from rota.platform import json
from rota.platform.errors import ApiError, AuthenticationFailed, Forbidden, UnsupportedMediaType
from rota.platform.http.origins import OwnOrigin
from rota.platform.http.responses import json_response

METADATA_PATH = f"/.well-known/oauth-protected-resource{PATH}"


class OriginRefused(Forbidden):
    def __init__(self) -> None:
        super().__init__(
            "Pages of this origin cannot use this endpoint. The operator can allow the origin with "
            "ROTA_CORS_ORIGINS."
        )


class Endpoint:
    """Checks what all requests have in common, and gives them to the server."""

    def __init__(
        self,
        server: McpServer,
        public_url: str,
        own_origin: OwnOrigin,
        cors_origins: Collection[str],
    ) -> None:
        self._server = server
        self._own_origin = own_origin
        self._cors_origins = frozenset(cors_origins)
        self._challenge = f'Bearer resource_metadata="{public_url.rstrip("/")}{METADATA_PATH}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        try:
            check_program(caller_of(scope), PATH)
        except AuthenticationFailed as error:
            error.headers = {"WWW-Authenticate": self._challenge}
            raise
        except ApiError as error:
            if error.status == 403:
                challenge = f'{self._challenge}, error="insufficient_scope"'
                error.headers = {"WWW-Authenticate": challenge}
            raise
        self._check_origin(headers)
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise UnsupportedMediaType(
                "The request body must be JSON. Send the header Content-Type: application/json."
            )
        body = await Request(scope, receive).body()
        try:
            # The SDK accepts more, such as texts that no database can store.
            json.loads(body)
        except json.InvalidJson as error:
            await _not_json(error)(scope, receive, send)
            return
        await self._server.handle(scope, _replayed(body, receive), send)

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        """A web page must not use a server that the user reaches, unless it is allowed."""
        sent = headers.get(b"origin")
        if sent is None:
            return
        origin = sent.decode("latin-1")
        if origin != self._own_origin.of(headers) and origin not in self._cors_origins:
            raise OriginRefused


def _not_json(error: json.InvalidJson) -> Response:
    message = f"The request body is not valid JSON: {error}."
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": message}}
    return json_response(400, body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then what the client does: it can only disconnect."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


class McpRoute(Route):
    """The log and the metrics name the route of a request."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, {**child, "route": self}


def mcp_server_routes(endpoint: Endpoint, issuers: Issuers, public_url: str) -> APIRouter:
    router = public_router("MCP server")
    resource = f"{public_url.rstrip('/')}{PATH}"
    metadata: dict[str, Any] = {
        "resource": resource,
        "resource_name": "Rota",
        "authorization_servers": issuers.names,
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }

    # The second is where clients look that do not follow the first.
    @router.get(METADATA_PATH, include_in_schema=False)
    @router.get("/.well-known/oauth-protected-resource", include_in_schema=False)
    async def protected_resource() -> Response:
        """RFC 9728."""
        return json_response(200, metadata, {"Cache-Control": "public, max-age=300"})

    router.routes.append(McpRoute(PATH, endpoint, methods=["POST"], include_in_schema=False))
    return router
