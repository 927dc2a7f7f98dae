"""Whether the service lives, and whether what it stands on answers."""

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
    """The process answers requests."""

    status: Annotated[Literal["live"], Field(description="Always `live`.", examples=["live"])] = (
        "live"
    )


Readiness = TypeAliasType(
    "Readiness",
    Annotated[
        Literal["ready", "degraded", "unavailable"],
        Field(
            description="`ready`: every part answers. `degraded`: a part does not answer, and the "
            "service works without it for a while. `unavailable`: the database does not answer.",
            examples=["ready"],
        ),
    ],
)


class ReadyResponse(Wire):
    """Whether the service can take requests, and the parts that it depends on."""

    status: Annotated[Readiness, Field(description="Whether the service can take requests.")]
    checks: Annotated[
        dict[str, str],
        Field(
            description="Each part by its name: `ok`, or why the check failed.",
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
        return f"no answer within {TIMEOUT_S:g} s"
    except Exception as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def health_routes(essential: Mapping[str, Check], others: Mapping[str, Check]) -> APIRouter:
    """`essential` parts decide whether requests may come; `others` only show."""
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)
    checks = {**essential, **others}

    @router.get("/health/live", summary="Check that the process is alive")
    async def live() -> LiveResponse:
        """For liveness probes. It checks no other part: a restart does not repair a database."""
        return LiveResponse()

    @router.get(
        "/health/ready",
        summary="Check that the service is ready",
        responses={
            503: {
                "model": ReadyResponse,
                "description": "PostgreSQL does not answer.",
                "content": {"application/json": {"example": _UNAVAILABLE}},
            }
        },
    )
    async def ready(response: Response) -> ReadyResponse:
        """For readiness probes. Checks PostgreSQL, Redis and Temporal. Only PostgreSQL is
        essential: without it the answer is 503; without another part it is 200 and `degraded`."""
        outcomes = dict(
            zip(checks, await asyncio.gather(*map(_outcome, checks.values())), strict=True)
        )
        if any(outcomes[name] != "ok" for name in essential):
            response.status_code = 503
            return ReadyResponse(status="unavailable", checks=outcomes)
        good = all(outcome == "ok" for outcome in outcomes.values())
        return ReadyResponse(status="ready" if good else "degraded", checks=outcomes)

    return router
