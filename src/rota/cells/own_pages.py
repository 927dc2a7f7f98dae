"""The paths that the router answers itself: its health, and its metrics."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp

from rota.cells.cell import Cell
from rota.cells.fetching import fetch
from rota.platform.cache import SharedCalls
from rota.platform.health import HealthChecks, health_routes
from rota.platform.start_checks import StartRefused

PATHS = ("/health/live", "/health/ready", "/metrics")


def own_pages(cells: Mapping[str, Cell], *, metrics: bool) -> ASGIApp:
    app = FastAPI(openapi_url=None, telemetry={"tracing": False, "metrics": False, "logs": False})
    calls: SharedCalls[str, None] = SharedCalls()
    checks = {name: _check(cell, calls) for name, cell in cells.items()}

    async def any_cell() -> None:
        """One cell that is down, or does not answer, does not make the router unavailable for the
        others."""
        asked = [asyncio.ensure_future(check()) for check in checks.values()]
        try:
            for first in asyncio.as_completed(asked):
                try:
                    await first
                except Exception:  # noqa: S112
                    continue
                return
        finally:
            for each in asked:
                each.cancel()
        raise StartRefused("No cell is ready.")

    app.include_router(health_routes(HealthChecks({"cells": any_cell}, checks)))
    if metrics:
        app.add_api_route("/metrics", _metrics)
    return app


def _check(cell: Cell, calls: SharedCalls[str, None]) -> Callable[[], Awaitable[None]]:
    async def ask() -> None:
        ready = False
        try:
            status, _ = await fetch(cell, "/health/ready")
            ready = status == 200
        finally:
            cell.suspect(failed=not ready)
        if not ready:
            raise StartRefused(f"The cell answers {status}.")

    async def check() -> None:
        await calls.run(cell.name, ask)

    return check


async def _metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
