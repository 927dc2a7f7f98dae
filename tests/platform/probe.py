"""Routes that misbehave on request, and a server process with them.

`python -m tests.platform.probe` runs `rota serve` with these additional routes. The variable
CLIENT_TIMEOUT_S shortens the timeouts for slow clients.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal

import asyncpg
import typer
from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from prometheus_client import start_http_server
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from rota.app import create_app
from rota.auth.routing import AnyCaller, public_router, secured_router
from rota.cli.runtime import exit_on_error
from rota.platform.http import server
from rota.platform.http.schemas import Body, BodyTimestamp, QueryInt, Text, Timestamp, Wire
from rota.platform.http.server import ClientTimeouts
from rota.platform.settings import Settings
from rota.platform.telemetry import configure_logging

AI_PREFIX = "/api/probe/ai"
# More than the socket buffers of both sides hold.
LARGE = 32 * 1024 * 1024


class Letter(Body):
    subject: Annotated[str, Field(max_length=20)]
    kind: Literal["plain", "fancy"] = "plain"
    copies: Annotated[int, Field(ge=1, le=9)] = 1
    weight: float = 0.0
    tags: list[Literal["a", "b"]] | None = None
    notes: dict[str, int] | None = None
    send_at: BodyTimestamp | None = None


class LetterResponse(Wire):
    subject: str
    send_at: Timestamp | None


def public_probe(database_url: str) -> APIRouter:
    router = public_router("Probe")

    @router.get("/api/probe/crash", summary="Raises an unexpected exception")
    async def crash(request: Request) -> None:
        raise RuntimeError(f"internal details of {request.headers.get('authorization')}")

    @router.get("/api/probe/crash-late", summary="Raises after the response has started")
    async def crash_late() -> StreamingResponse:
        async def content() -> AsyncIterator[bytes]:
            yield b"first part"
            raise RuntimeError("internal details")

        return StreamingResponse(content())

    @router.get("/api/probe/database", summary="Runs an invalid query")
    async def database() -> None:
        connection = await asyncpg.connect(database_url)
        try:
            await connection.execute("SELECT secret_column FROM secret_table")
        finally:
            await connection.close()

    @router.get("/api/probe/until", summary="Starts a response and ends it when a file exists")
    async def until(file: str) -> StreamingResponse:
        async def content() -> AsyncIterator[bytes]:
            yield b"begun,"
            while not await asyncio.to_thread(Path(file).exists):
                await asyncio.sleep(0.01)
            yield b"done"

        return StreamingResponse(content())

    @router.get("/api/probe/large", summary="Responds with much")
    async def large() -> Response:
        return Response(bytes(LARGE))

    @router.get("/api/probe/forever", summary="Never responds")
    async def forever() -> None:
        await asyncio.Event().wait()

    @router.get("/api/probe/page", summary="Takes a query")
    async def page(limit: QueryInt = 50, search: Text = "") -> dict[str, int]:
        return {"limit": limit}

    @router.post("/api/probe/letters", summary="Takes a body", status_code=201)
    async def letters(letter: Letter) -> LetterResponse:
        return LetterResponse(subject=letter.subject, send_at=letter.send_at)

    return router


def secured_probe() -> APIRouter:
    router = secured_router("Probe")

    @router.get(f"{AI_PREFIX}/think", summary="Counts as an AI endpoint")
    async def think(caller: AnyCaller) -> dict[str, str]:
        return {"tier": caller.tier}

    return router


def short_timeouts(seconds: float) -> ClientTimeouts:
    return ClientTimeouts(head_s=seconds, body_s=seconds, response_s=seconds)


def main() -> None:
    settings = Settings()
    configure_logging(settings.log_level, settings.log_format)
    if settings.metrics_port is not None:
        start_http_server(settings.metrics_port, addr=settings.host)
    if (short_s := os.environ.get("CLIENT_TIMEOUT_S")) is not None:
        server.Protocol.timeouts = short_timeouts(float(short_s))
    routers = (public_probe(settings.database_url.get_secret_value()), secured_probe())
    app = create_app(settings, extra_routers=routers, ai_prefixes=(AI_PREFIX,))
    try:
        with exit_on_error():
            server.run(
                app, settings, app.router.lifespan_context(app), on_stop=app.state.streams.close
            )
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


if __name__ == "__main__":
    main()
