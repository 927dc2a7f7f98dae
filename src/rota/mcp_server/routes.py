"""The endpoint of the MCP server, and the metadata that tells clients how to get a token.

The protocol defines the bodies, so neither is part of the OpenAPI description.
"""

from fastapi import APIRouter
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rota.auth.issuers import Issuers
from rota.auth.program_endpoints import METADATA_ROOT, ProgramEndpoint
from rota.auth.routing import public_router
from rota.mcp_server.server import PATH, McpServer
from rota.platform import json
from rota.platform.errors import UnsupportedMediaType
from rota.platform.http.mounted import NamedRoute, replayed
from rota.platform.http.responses import json_response


class Endpoint:
    """Checks what all requests have in common, and gives them to the server."""

    def __init__(self, server: McpServer, program: ProgramEndpoint) -> None:
        self._server = server
        self._program = program

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        self._program.check_credential(scope)
        self._program.check_origin(headers)
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise UnsupportedMediaType(
                "The request body must be JSON. Send the header Content-Type: application/json."
            )
        body = await Request(scope, receive).body()
        try:
            # The SDK accepts more, such as texts that no database can store.
            sent = json.loads(body)
        except json.InvalidJson as error:
            message = f"The request body is not valid JSON: {error}."
            await _refused(PARSE_ERROR, message)(scope, receive, send)
            return
        if not isinstance(sent, dict):
            message = "The request body must be one JSON object. Send one request at a time."
            await _refused(INVALID_REQUEST, message)(scope, receive, send)
            return
        await self._server.handle(scope, replayed(body, receive), send)


def _refused(code: int, message: str) -> Response:
    error = {"code": code, "message": message}
    return json_response(400, {"jsonrpc": "2.0", "id": None, "error": error})


def mcp_server_routes(server: McpServer, program: ProgramEndpoint, issuers: Issuers) -> APIRouter:
    router = public_router("MCP server")
    # Clients that do not follow the first path look at the second.
    program.add_metadata(router, issuers, METADATA_ROOT)
    endpoint = Endpoint(server, program)
    router.routes.append(NamedRoute(PATH, endpoint, methods=["POST"], include_in_schema=False))
    return router
