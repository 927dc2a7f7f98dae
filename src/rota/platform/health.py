"""Health checks: liveness of the process, and readiness of the services it depends on."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from prometheus_client import Gauge
from pydantic import Field
from typing_extensions import TypeAliasType

from rota.platform.http.routes import by_name
from rota.platform.http.schemas import Wire
from rota.platform.start_checks import StartRefused

Check = Callable[[], Awaitable[object]]
TIMEOUT_S = 2.0
# How long a result is used. Callers during a check share it.
MAX_AGE_S = 1.0
MEASURE_EVERY_S = 15.0

CHECK_OK = Gauge(
    "rota_check_ok", "1 if a check of the readiness of this process succeeded, or 0.", ["check"]
)


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
            "and the service works without it for now. `unavailable`: the database is down, its "
            "schema is older than the service, or the service has another secret key.",
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
            examples=[
                {
                    "postgres": "ok",
                    "schema": "ok",
                    "secretKey": "ok",
                    "redis": "ok",
                    "temporal": "ok",
                }
            ],
        ),
    ]


_UNAVAILABLE = {
    "status": "unavailable",
    "checks": {
        "postgres": "ok",
        "schema": "failed: The database schema has version 0023, and this release needs 0024. "
        "Run: rota admin migrate",
        "secretKey": "ok",
        "redis": "ok",
        "temporal": "ok",
    },
}


async def _outcome(check: Check) -> str:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await check()
    except TimeoutError:
        return f"no response within {TIMEOUT_S:g} s"
    except StartRefused as error:
        # Written for the operator, and without secrets.
        return f"failed: {error}"
    except Exception as error:
        return f"failed: {type(error).__name__}"
    return "ok"


class HealthChecks:
    """The checks behind the readiness of a process.

    If an `essential` check fails, the process is unavailable. The `others` are only reported. All
    of them run at once, and at most once per `MAX_AGE_S` however many callers there are.
    """

    def __init__(self, essential: Mapping[str, Check], others: Mapping[str, Check]) -> None:
        self.essential = frozenset(essential)
        self._checks = {**essential, **others}
        self._run: asyncio.Task[dict[str, str]] | None = None
        self._started_at = 0.0

    async def outcomes(self) -> dict[str, str]:
        age_s = time.monotonic() - self._started_at
        if self._run is None or (self._run.done() and age_s >= MAX_AGE_S):
            self._started_at = time.monotonic()
            self._run = asyncio.create_task(self._all())
        # The others still wait if this caller disconnects.
        return await asyncio.shield(self._run)

    async def _all(self) -> dict[str, str]:
        found = await asyncio.gather(*map(_outcome, self._checks.values()))
        return dict(zip(self._checks, found, strict=True))

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        """Keeps the metric of the checks up to date, even if nobody asks for the readiness."""
        measuring = asyncio.create_task(self._measure())
        try:
            yield
        finally:
            measuring.cancel()

    async def _measure(self) -> None:
        while True:
            for name, outcome in (await self.outcomes()).items():
                CHECK_OK.labels(name).set(outcome == "ok")
            await asyncio.sleep(MEASURE_EVERY_S)


def health_routes(checks: HealthChecks) -> APIRouter:
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)

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
                "description": "An essential check failed.",
                "content": {"application/json": {"example": _UNAVAILABLE}},
            }
        },
    )
    async def ready(response: Response) -> ReadyResponse:
        """For readiness probes. Checks PostgreSQL, the version of its schema, the secret key, Redis
        and Temporal, at most once a second. Returns 503 if one of the first three fails. If Redis
        or Temporal is down, returns 200 and `degraded`."""
        outcomes = await checks.outcomes()
        if any(outcomes[name] != "ok" for name in checks.essential):
            response.status_code = 503
            return ReadyResponse(status="unavailable", checks=outcomes)
        all_ok = all(outcome == "ok" for outcome in outcomes.values())
        return ReadyResponse(status="ready" if all_ok else "degraded", checks=outcomes)

    return router
