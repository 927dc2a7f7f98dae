"""Whether the service lives, and whether what it stands on answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from rota.platform.http.routes import by_name
from rota.platform.http.schemas import Wire

Check = Callable[[], Awaitable[object]]
TIMEOUT_S = 2.0


class LiveResponse(Wire):
    status: Literal["live"] = "live"


class ReadyResponse(Wire):
    # degraded: something is away that the service can do without for a while.
    status: Literal["ready", "degraded", "unavailable"]
    # Of each part: "ok", or why not.
    checks: Annotated[dict[str, str], Field(examples=[{"postgres": "ok", "redis": "ok"}])]


_UNAVAILABLE = {
    "status": "unavailable",
    "checks": {"postgres": "failed: ConnectionRefusedError", "redis": "ok"},
}


async def _outcome(check: Check) -> str:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await check()
    except TimeoutError:
        return f"no answer within {TIMEOUT_S:g} s"
    except Exception as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def health_routes(essential: Mapping[str, Check], others: Mapping[str, Check]) -> APIRouter:
    """`essential` parts decide whether requests may come; `others` only show."""
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)
    checks = {**essential, **others}

    @router.get("/health/live", summary="The process answers")
    async def live() -> LiveResponse:
        """Asks nothing else, so that a restart is not the answer to somebody else's trouble."""
        return LiveResponse()

    @router.get(
        "/health/ready",
        summary="PostgreSQL, Redis and Temporal answer",
        responses={
            503: {
                "model": ReadyResponse,
                "description": "PostgreSQL does not answer.",
                "content": {"application/json": {"example": _UNAVAILABLE}},
            }
        },
    )
    async def ready(response: Response) -> ReadyResponse:
        """Degraded is ready too: what is away then can be done without for a while."""
        outcomes = dict(
            zip(checks, await asyncio.gather(*map(_outcome, checks.values())), strict=True)
        )
        if any(outcomes[name] != "ok" for name in essential):
            response.status_code = 503
            return ReadyResponse(status="unavailable", checks=outcomes)
        good = all(outcome == "ok" for outcome in outcomes.values())
        return ReadyResponse(status="ready" if good else "degraded", checks=outcomes)

    return router
