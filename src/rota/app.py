"""Builds the HTTP application from settings."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from rota.a2a.assembly import PATH as A2A_PATH
from rota.a2a.assembly import A2aAssembly
from rota.agents.routes import agent_routes
from rota.audit.routes import audit_key_routes, audit_routes
from rota.auth.routes import (
    jwks_routes,
    key_routes,
    me_routes,
    session_routes,
    sign_in_routes,
)
from rota.companies.invitation_routes import invitation_routes
from rota.companies.routes import company_routes
from rota.composition import Composition
from rota.credits.routes import credit_routes
from rota.dashboard import dashboard_routes
from rota.data.routes import data_routes
from rota.events.routes import event_routes
from rota.limits.guard import AI_PREFIXES, UNLIMITED, RequestGuard
from rota.mcp.routes import mcp_routes
from rota.mcp_server.assembly import McpAssembly
from rota.mcp_server.server import PATH as MCP_PATH
from rota.notifications.routes import notification_routes, unsubscribe_routes
from rota.payments.routes import webhook_routes as payment_routes
from rota.plans.routes import offer_routes, pass_routes, plan_routes, tier_routes
from rota.platform import collector
from rota.platform.health import HealthChecks, health_routes
from rota.platform.http.application import Application
from rota.platform.http.description import describe
from rota.platform.http.docs import docs_routes
from rota.platform.http.edge import Edge
from rota.platform.http.origins import LOOPBACK_ADDRESSES, HostCheck
from rota.platform.http.responses import add_handlers
from rota.platform.http.routes import by_name
from rota.platform.settings import Settings
from rota.policies.routes import policy_routes
from rota.receipts.routes import receipt_routes
from rota.rules.routes import rule_routes
from rota.runs.routes import run_routes
from rota.schedules.routes import schedule_routes
from rota.tasks.batch_routes import batch_routes
from rota.tasks.overview_routes import hold_routes, statistics_routes
from rota.tasks.routes import task_routes
from rota.webhooks.routes import webhook_key_routes, webhook_routes

DESCRIPTION = """\
Give tasks to AI agents and approve what they do.

**Start here.** Sign in with `POST /api/auth/session`, or create an API key with `POST /api/keys`.
Send it as `Authorization: Bearer <credential>`. Then create a task with `POST /api/tasks` and
read it with `GET /api/tasks/{id}`.

**Conventions.** Bodies are JSON with camelCase names. Times are ISO 8601 in UTC, with
milliseconds. Names of amounts include the unit: `…Cents` are US cents, `…Micros` are millionths of
a US dollar, `…Usd` are exact decimal strings. IDs are opaque strings with a prefix, such as
`task_…`. Long lists accept `limit` and `offset`, and return `total`.

**Errors.** Check the HTTP status first. The body is
`{ "error": { message, code, details, timestamp, path } }`. On 429, wait as long as `Retry-After`
says. On 500 and 503, retry and wait longer each time. With an `Idempotency-Key`, a POST
that creates or spends is safe to repeat.

**Versions.** Every response names the date of the API contract in `Api-Version`. Send the same
header to pin it.
"""
METRICS_EXAMPLE = """\
# HELP rota_http_requests_total Requests handled.
# TYPE rota_http_requests_total counter
rota_http_requests_total{method="GET",route="/api/tasks",status="200"} 3.0
"""


def create_app(
    settings: Settings,
    *,
    extra_routers: Sequence[APIRouter] = (),
    ai_prefixes: tuple[str, ...] = AI_PREFIXES,
) -> FastAPI:
    """The application connects only when it starts, so its OpenAPI description needs no servers."""
    parts = Composition(settings)
    variant = parts.variant
    notifications = parts.notifications.service()
    mcp = McpAssembly(
        settings,
        parts.db,
        parts.authenticator,
        parts.issuers,
        parts.tasks,
        parts.reviews,
        parts.catalog,
        variant.agent_access,
        parts.streams,
    )
    a2a = A2aAssembly(
        settings,
        parts.db,
        parts.authenticator,
        parts.issuers,
        parts.tasks,
        parts.catalog,
        variant.agent_access,
        parts.streams,
    )
    guard = RequestGuard(
        parts.authenticator,
        parts.cookies,
        parts.limiter,
        variant.ceilings_of,
        lowest_tier=variant.lowest_tier,
        trusted_proxies=settings.trusted_networks,
        ai_prefixes=ai_prefixes,
        programs={MCP_PATH: mcp.credentials, A2A_PATH: a2a.credentials},
    )

    checks = HealthChecks(
        {
            "postgres": parts.db.ping,
            "schema": parts.check_database,
            "secretKey": parts.check_secret_key,
        },
        {"redis": parts.ping_redis, "temporal": parts.temporal.ping},
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with parts:
            # Before the task group of the MCP server, which would wrap the error in a group.
            await parts.check_start()
            async with mcp.server.running(), checks.measured():
                collector.settle()
                yield

    app = Application(
        title="Rota",
        description=DESCRIPTION,
        lifespan=lifespan,
        # docs_routes serves the description and the docs.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Edge does this. FastAPI's own telemetry takes a tenth of the time of a small request.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    if settings.env == "development" and settings.host in LOOPBACK_ADDRESSES:
        app.add_middleware(HostCheck, public_url=settings.public_url)
    app.add_middleware(
        Edge,
        guard=guard,
        cors_origins=settings.cors_origins,
        https=settings.public_url.startswith("https://"),
    )
    add_handlers(app)
    enums = {"Tier": [tier.name.upper() for tier in variant.tiers], "Variant": [variant.name]}
    app.openapi = lambda: describe(  # type: ignore[method-assign]
        app, unlimited=UNLIMITED, enums=enums
    )
    for router in (
        task_routes(parts.tasks, parts.reviews, parts.streams, parts.authenticator),
        batch_routes(parts.batches),
        me_routes(parts.profiles, variant.name),
        agent_routes(parts.catalog, variant.agent_access),
        run_routes(parts.timelines, parts.retries, parts.forks),
        schedule_routes(parts.schedules),
        event_routes(parts.streams, parts.authenticator),
        mcp_routes(parts.servers, parts.tool_calls),
        credit_routes(parts.credits),
        hold_routes(parts.overview),
        statistics_routes(parts.overview),
        tier_routes(parts.purchases),
        offer_routes(
            variant.tiers,
            variant.pass_price_cents,
            parts.tier_allowance,
            takes_payments=settings.stripe_secret_key is not None,
        ),
        *([plan_routes(parts.purchases)] if variant.sells_plans else []),
        *([pass_routes(parts.purchases)] if variant.pass_price_cents is not None else []),
        payment_routes(
            parts.processor,
            parts.credits.take_payment,
            parts.credits.sync_payment,
            parts.plans.sync,
        ),
        key_routes(parts.keys),
        company_routes(parts.companies, parts.members, parts.authenticator),
        invitation_routes(parts.invitations, parts.authenticator),
        policy_routes(parts.policies),
        webhook_routes(parts.webhooks),
        webhook_key_routes(parts.webhook_signer),
        rule_routes(parts.rules),
        data_routes(parts.exports, parts.erasures, parts.authenticator, parts.cookies),
        notification_routes(notifications),
        unsubscribe_routes(notifications),
        sign_in_routes(
            parts.sessions,
            parts.issuers,
            parts.cookies,
            variant.name,
            in_cell=settings.cell is not None,
        ),
        session_routes(parts.sessions, parts.cookies),
        jwks_routes(parts.key_ring),
        audit_routes(parts.audit_trail, parts.authenticator),
        audit_key_routes(parts.audit_trail),
        receipt_routes(parts.receipts),
        health_routes(checks),
        mcp.routes(),
        a2a.routes(),
        docs_routes("Rota", app.openapi),
        dashboard_routes(),
        *([_metrics_routes()] if settings.metrics_port is None else []),
        *extra_routers,
    ):
        # One flat list of routes, from which the application makes its index.
        app.router.routes.extend(router.routes)
    # The server closes the streams when it stops. They would otherwise delay the shutdown.
    app.state.streams = parts.streams
    return app


def _metrics_routes() -> APIRouter:
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)

    @router.get(
        "/metrics",
        summary="Get Prometheus metrics",
        response_class=PlainTextResponse,
        responses={200: {"content": {"text/plain": {"example": METRICS_EXAMPLE}}}},
    )
    async def metrics() -> Response:
        """Metrics of this process in the Prometheus text format. Without a separate metrics port,
        they are here."""
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return router
