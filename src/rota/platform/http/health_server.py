"""The health checks and metrics of a process that serves no API, such as a worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from rota.platform.health import HealthChecks, health_routes
from rota.platform.http.server import Server, listen


@asynccontextmanager
async def health_server(
    host: str, port: int, variable: str, checks: HealthChecks
) -> AsyncIterator[None]:
    """Serves /health/live, /health/ready and /metrics while the context is open.

    It uses the event loop of the process, so /health/live does not respond if the loop hangs.
    """
    sockets = listen(host, port, variable)
    app = FastAPI(openapi_url=None, telemetry={"tracing": False, "metrics": False, "logs": False})
    app.include_router(health_routes(checks))
    app.add_api_route("/metrics", _metrics)
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = Server(config)
    running = asyncio.create_task(server.serve(sockets))
    try:
        async with checks.measured():
            yield
    finally:
        server.should_exit = True
        await running


async def _metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
