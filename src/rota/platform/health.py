"""Health checks: liveness of the process, and readiness of the services it depends on."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import Field
from typing_extensions import TypeAliasType

from rota.platform.http.routes import by_name
from rota.platform.http.schemas import Wire

Check = Callable[[], Awaitable[object]]
TIMEOUT_S = 2.0


class LiveResponse(Wire):
    """The process is running."""

    status: Annotated[Literal["live"], Field(description="Always `live`.", examples=["live"])] = (
        "live"
    )


Readiness = TypeAliasType(
    "Readiness",
    Annotated[
        Literal["ready", "degraded", "unavailable"],
        Field(
            description="`ready`: every check succeeded. `degraded`: Redis or Temporal is down, "
            "and "
            "the service works without it for now. `unavailable`: the database is down.",
            examples=["ready"],
        ),
    ],
)


class ReadyResponse(Wire):
    """Whether the service can handle requests, and the result of each check."""

    status: Annotated[Readiness, Field(description="Whether the service can handle requests.")]
    checks: Annotated[
        dict[str, str],
        Field(
            description="The result of each check: `ok`, or why it failed.",
            examples=[{"postgres": "ok", "redis": "ok", "temporal": "ok"}],
        ),
    ]


_UNAVAILABLE = {
    "status": "unavailable",
    "checks": {"postgres": "failed: ConnectionRefusedError", "redis": "ok", "temporal": "ok"},
}


async def _outcome(check: Check) -> str:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await check()
    except TimeoutError:
        return f"no response within {TIMEOUT_S:g} s"
    except Exception as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def health_routes(essential: Mapping[str, Check], others: Mapping[str, Check]) -> APIRouter:
    """If an `essential` check fails, the service is unavailable. The `others` are only reported."""
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)
    checks = {**essential, **others}

    @router.get("/health/live", summary="Check that the process is alive")
    async def live() -> LiveResponse:
        """For liveness probes. It checks only the process: a restart does not repair a database."""
        return LiveResponse()

    @router.get(
        "/health/ready",
        summary="Check that the service is ready",
        responses={
            503: {
                "model": ReadyResponse,
                "description": "PostgreSQL is down.",
                "content": {"application/json": {"example": _UNAVAILABLE}},
            }
        },
    )
    async def ready(response: Response) -> ReadyResponse:
        """For readiness probes. Checks PostgreSQL, Redis and Temporal. Returns 503
        if PostgreSQL is down. If Redis or Temporal is down, returns 200 and `degraded`."""
        outcomes = dict(
            zip(checks, await asyncio.gather(*map(_outcome, checks.values())), strict=True)
        )
        if any(outcomes[name] != "ok" for name in essential):
            response.status_code = 503
            return ReadyResponse(status="unavailable", checks=outcomes)
        all_ok = all(outcome == "ok" for outcome in outcomes.values())
        return ReadyResponse(status="ready" if all_ok else "degraded", checks=outcomes)

    return router
