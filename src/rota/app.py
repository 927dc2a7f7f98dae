"""Builds the HTTP application from settings."""

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
from rota.platform.http.description import describe
from rota.platform.http.docs import docs_routes
from rota.platform.http.edge import Edge
from rota.platform.http.responses import add_handlers
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
    """The application connects only when it starts, so its OpenAPI description needs no servers."""
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
        # docs_routes serves the docs without loading anything from other hosts.
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Edge does this. FastAPI's own telemetry takes a tenth of the time of a small request.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.add_middleware(Edge, guard=guard)
    add_handlers(app)
    # The busiest first: a request is matched against the routes in this order.
    for router in (
        task_routes(parts.tasks, parts.reviews, parts.streams, parts.authenticator),
        me_routes(parts.profiles, variant.name),
        agent_routes(parts.catalog, variant.agent_access),
        run_routes(parts.timelines),
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
        # One flat list of routes. Nested routers would make matching slower.
        app.router.routes.extend(router.routes)
    # The server closes the streams when it stops. They would otherwise delay the shutdown.
    app.state.streams = parts.streams
    app.openapi = lambda: describe(app, unlimited=UNLIMITED)  # type: ignore[method-assign]
    return app


def _metrics_routes() -> APIRouter:
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)

    @router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return router
