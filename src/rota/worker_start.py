"""What a worker refuses to start with, and what it reports about itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from rota.composition import Composition
from rota.platform.health import HealthChecks
from rota.platform.http.health_server import health_server
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.runs.model_names import configured
from rota.runs.model_problems import problems
from rota.runs.models import Models

log = structlog.get_logger()

NO_MODELS = (
    "ROTA_MODELS has no model, so no task can run. Example: "
    '{"default": {"provider": "openai", "model": "gpt-5", "apiKey": "…"}}'
)


def check_models(settings: Settings, models: Models) -> None:
    """Refuses models that cannot be called. In development, a worker can have none."""
    if not configured(settings.models, settings.model_url):
        if settings.env == "production":
            raise StartRefused(NO_MODELS)
        log.warning("no_models", reason=NO_MODELS)
    for name, problem in problems(settings.models).items():
        raise StartRefused(f"ROTA_MODELS: {name}: {problem}")
    models.create_all()


class WorkerState:
    """The checks behind the health endpoints of a worker."""

    def __init__(self, parts: Composition, stop: asyncio.Event) -> None:
        self._parts = parts
        self._stop = stop
        # Whether the worker takes work from Temporal.
        self.polls = False

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        settings, parts = self._parts.settings, self._parts
        port = settings.worker_port or settings.metrics_port
        if port is None:
            yield
            return
        essential = {
            "postgres": parts.db.ping,
            "schema": parts.check_database,
            "secretKey": parts.check_secret_key,
            "temporal": parts.temporal.ping,
            "work": self._takes_work,
        }
        others = {"redis": parts.ping_redis, "models": self._has_models}
        host = settings.worker_host or settings.host
        variable = "ROTA_WORKER_PORT (default: ROTA_METRICS_PORT)"
        async with health_server(host, port, variable, HealthChecks(essential, others)):
            yield

    async def _takes_work(self) -> None:
        if self._stop.is_set():
            raise StartRefused("The worker is stopping and takes no new work.")
        if not self.polls:
            raise StartRefused("The worker is waiting for Temporal. Check ROTA_TEMPORAL_ADDRESS.")

    async def _has_models(self) -> None:
        if not configured(self._parts.settings.models, self._parts.settings.model_url):
            raise StartRefused(NO_MODELS)
