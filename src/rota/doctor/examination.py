"""All checks, from names to a model call."""

from collections.abc import AsyncIterator

from rota.composition import Composition
from rota.doctor import database, names, outside, queues
from rota.doctor.finding import Finding, findings, ok, warning
from rota.doctor.models import check_models
from rota.platform.settings import Settings, unknown_variables

MODELS_TIMEOUT_S = 300.0


async def examine(settings: Settings, *, call_models: bool) -> AsyncIterator[Finding]:
    """Each finding as soon as it is known. No check changes anything."""
    for finding in _settings(settings):
        yield finding
    for finding in await findings("dns", lambda: names.check(settings)):
        yield finding
    # For a worker, which needs more rights than `rota serve`.
    parts = Composition(settings, pool_size=2, for_worker=True)
    agents = None
    server = await findings("postgres", lambda: database.check_server(settings))
    for finding in server:
        yield finding
    if all(finding.status != "failed" for finding in server):
        stored = await database.check_contents(parts)
        agents = stored.agents
        for finding in stored.findings:
            yield finding
    for name, check in (
        ("redis", lambda: queues.check_redis(settings)),
        ("temporal", lambda: queues.check_temporal(parts.temporal, settings)),
        ("issuers", lambda: outside.check_issuers(settings)),
        ("payments", lambda: outside.check_payments(settings)),
        ("mail", lambda: outside.check_mail(settings)),
        ("tracing", lambda: outside.check_tracing(settings)),
        ("public url", lambda: outside.check_public_url(settings)),
    ):
        for finding in await findings(name, check):
            yield finding
    checked = await findings(
        "models", lambda: check_models(settings, agents, call=call_models), MODELS_TIMEOUT_S
    )
    for finding in checked:
        yield finding


def _settings(settings: Settings) -> list[Finding]:
    unknown = [
        warning(
            "settings",
            f"{name} is not a setting. "
            + (f"Rename it to {nearest}." if nearest else "Remove it, or check its name."),
        )
        for name, nearest in unknown_variables().items()
    ]
    return unknown or [ok("settings", f"valid for {settings.env}, variant {settings.variant}")]
