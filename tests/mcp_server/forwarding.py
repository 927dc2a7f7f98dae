"""A forwarder that adds a credential, for programs that can send none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send

from tests.service import free_port

_DROPPED = (b"content-length", b"transfer-encoding", b"connection")


class Forwarder:
    def __init__(self, target: str, credential: str) -> None:
        self._http = httpx.AsyncClient(base_url=target, timeout=60)
        self._authorization = f"Bearer {credential}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [pair for pair in scope["headers"] if pair[0] not in _DROPPED]
        headers.append((b"authorization", self._authorization))
        async with self._http.stream(
            scope["method"], scope["path"], content=body, headers=headers
        ) as answer:
            await send(
                {
                    "type": "http.response.start",
                    "status": answer.status_code,
                    "headers": [
                        (name.lower(), value)
                        for name, value in answer.headers.raw
                        if name.lower() not in _DROPPED
                    ],
                }
            )
            async for part in answer.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def forwarding(target: str, credential: str) -> AsyncIterator[str]:
    """The URL of a forwarder to the target."""
    port = free_port()
    app = Forwarder(target, credential)
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, lifespan="off")
    )
    running = asyncio.create_task(server._serve())
    async with asyncio.timeout(30):
        while not server.started:
            await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await running
