"""Builds the HTTP application from settings: the one place where the parts meet."""

import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from rota.agents.routes import agent_routes
from rota.auth.routes import (
    jwks_routes,
    key_routes,
    logout_routes,
    me_routes,
    sign_in_routes,
)
from rota.composition import Composition
from rota.credits.routes import credit_routes
from rota.events.routes import event_routes
from rota.limits.guard import AI_PREFIXES, UNLIMITED, RequestGuard
from rota.mcp.routes import mcp_routes
from rota.payments.routes import webhook_routes
from rota.plans.billing_page import billing_routes
from rota.plans.routes import pass_routes, plan_routes, tier_routes
from rota.platform.health import health_routes
from rota.platform.http.answers import add_handlers
from rota.platform.http.description import describe
from rota.platform.http.docs import docs_routes
from rota.platform.http.edge import Edge
from rota.platform.http.routes import by_name
from rota.platform.settings import Settings
from rota.runs.routes import run_routes
from rota.tasks.routes import task_routes

DESCRIPTION = "Hand work to named AI agents and stay in charge of it."


def create_app(
    settings: Settings,
    *,
    extra_routers: Sequence[APIRouter] = (),
    ai_prefixes: tuple[str, ...] = AI_PREFIXES,
) -> FastAPI:
    """The application. It connects when it starts, so describing it needs nothing running."""
    parts = Composition(settings)
    variant = parts.variant
    guard = RequestGuard(
        parts.authenticator,
        parts.limiter,
        variant.ceilings_of,
        lowest_tier=variant.lowest_tier,
        trusted_proxies=settings.trusted_networks,
        ai_prefixes=ai_prefixes,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with parts:
            # These objects live as long as the process, so the collector can skip them.
            gc.collect()
            gc.freeze()
            yield

    app = FastAPI(
        title="Rota",
        description=DESCRIPTION,
        lifespan=lifespan,
        # Ours needs nothing from outside; see docs_routes.
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Ours is at the edge; FastAPI's own costs a tenth of a small request.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.add_middleware(Edge, gate=guard)
    add_handlers(app)
    # The busiest first: a request is held against them in this order.
    for router in (
        task_routes(parts.tasks, parts.decisions, parts.streams, parts.authenticator),
        me_routes(parts.db, variant.name),
        agent_routes(parts.catalog, variant.agent_access),
        run_routes(parts.db),
        event_routes(parts.streams, parts.authenticator),
        mcp_routes(parts.servers),
        credit_routes(parts.credits),
        tier_routes(parts.purchases),
        *([plan_routes(parts.purchases)] if variant.sells_plans else []),
        *([pass_routes(parts.purchases)] if variant.pass_price_cents is not None else []),
        webhook_routes(parts.processor, parts.credits.take_payment, parts.plans.sync),
        key_routes(parts.keys),
        sign_in_routes(parts.sessions, variant.name, settings.oidc_issuers),
        logout_routes(parts.sessions),
        jwks_routes(parts.key_ring),
        health_routes(
            {"postgres": parts.db.ping},
            {"redis": parts.limiter_redis.ping, "temporal": parts.temporal.ping},
        ),
        docs_routes("Rota"),
        billing_routes(variant.tiers, variant.pass_price_cents, parts.tier_allowance),
        *([_metrics_routes()] if settings.metrics_port is None else []),
        *extra_routers,
    ):
        # Into one flat table: a router inside of another is searched as a whole first.
        app.router.routes.extend(router.routes)
    # For a server that is told to stop: streams would go on for as long as it lets them.
    app.state.streams = parts.streams
    app.openapi = lambda: describe(app, unlimited=UNLIMITED)  # type: ignore[method-assign]
    return app


def _metrics_routes() -> APIRouter:
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)

    @router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return router
