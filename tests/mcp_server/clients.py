"""Clients of the MCP server: the official one, and plain HTTP for what it would never send."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import httpx2
from mcp.client.extension import ClientExtension
from mcp.client.streamable_http import streamable_http_client

from mcp import Client
from tests.service import Service

Generation = Literal["legacy", "2026-07-28"]
GENERATIONS: tuple[Generation, ...] = ("legacy", "2026-07-28")
VERSIONS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def url_of(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}/mcp"


@asynccontextmanager
async def connected(
    service: Service,
    credential: str,
    generation: Generation | Literal["auto"] = "2026-07-28",
    *,
    extensions: Sequence[ClientExtension] | None = None,
    headers: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """The official client, signed in with a key or an access token."""
    sent = {"Authorization": f"Bearer {credential}", **(headers or {})}
    async with httpx2.AsyncClient(headers=sent, timeout=60) as http:
        transport = streamable_http_client(url_of(service), http_client=http)
        async with Client(transport, mode=generation, extensions=extensions, **options) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The data of a call that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    assert isinstance(result.structured_content, dict)
    error: dict[str, Any] = result.structured_content["error"]
    return error


def envelope(
    generation: Generation,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    capabilities: dict[str, Any] | None = None,
) -> tuple[dict[str, str], dict[str, Any]]:
    """The headers and the body of one request, as each generation writes them."""
    params = dict(params or {})
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSIONS[generation],
    }
    if generation != "legacy":
        headers["Mcp-Method"] = method
        if (name := params.get("name") or params.get("taskId")) is not None:
            headers["Mcp-Name"] = name
        params["_meta"] = {
            **params.get("_meta", {}),
            "io.modelcontextprotocol/protocolVersion": VERSIONS[generation],
            "io.modelcontextprotocol/clientCapabilities": capabilities or {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def post(
    service: Service,
    credential: str | None,
    method: str = "tools/list",
    params: dict[str, Any] | None = None,
    *,
    generation: Generation = "2026-07-28",
    headers: dict[str, str] | None = None,
    capabilities: dict[str, Any] | None = None,
) -> httpx.Response:
    """One request, as a program without an SDK sends it."""
    sent, body = envelope(generation, method, params, capabilities=capabilities)
    if credential is not None:
        sent["Authorization"] = f"Bearer {credential}"
    return await service.http.post("/mcp", headers=sent | (headers or {}), json=body)
