"""Builds the HTTP application from settings: the one place where the parts meet."""

import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import httpx
from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from redis.asyncio import Redis

from rota.agents.catalog import Catalog
from rota.agents.routes import agent_routes
from rota.auth.authenticator import Authenticator
from rota.auth.issuers import Issuers
from rota.auth.keys import Keys
from rota.auth.routes import (
    jwks_routes,
    key_routes,
    logout_routes,
    me_routes,
    sign_in_routes,
)
from rota.auth.sessions import Sessions
from rota.auth.tokens import KeyRing, SessionTokens
from rota.credits.routes import credit_routes
from rota.credits.service import Credits
from rota.events import journal
from rota.events.fanout import Fanout
from rota.events.routes import event_routes
from rota.events.stream import Streams
from rota.limits import window
from rota.limits.guard import AI_PREFIXES, UNLIMITED, RequestGuard
from rota.limits.window import Window
from rota.mcp.routes import mcp_routes
from rota.mcp.service import Servers
from rota.mcp.wiring import mcp_wiring
from rota.payments.processor import processor_of
from rota.payments.routes import webhook_routes
from rota.plans.billing_page import billing_routes
from rota.plans.purchases import Purchases
from rota.plans.routes import pass_routes, plan_routes, tier_routes
from rota.plans.service import Plans
from rota.plans.tiers import Tiers
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.health import health_routes
from rota.platform.http.answers import add_handlers
from rota.platform.http.description import describe
from rota.platform.http.docs import docs_routes
from rota.platform.http.edge import Edge
from rota.platform.http.routes import by_name
from rota.platform.idempotency import Idempotency
from rota.platform.settings import Settings
from rota.platform.temporal import Temporal
from rota.runs.routes import run_routes
from rota.tasks.decisions import Decisions
from rota.tasks.routes import task_routes
from rota.tasks.service import Tasks
from rota.variants import VARIANTS

DESCRIPTION = "Hand work to named AI agents and stay in charge of it."


def create_app(
    settings: Settings,
    *,
    extra_routers: Sequence[APIRouter] = (),
    ai_prefixes: tuple[str, ...] = AI_PREFIXES,
) -> FastAPI:
    """The application. It connects when it starts, so describing it needs nothing running."""
    variant = VARIANTS[settings.variant]
    db = Database(settings.database_url.get_secret_value(), pool_size=settings.database_pool_size)
    redis = window.connect(settings.redis_url.get_secret_value())
    engine = Temporal(settings.temporal_address, settings.temporal_namespace)
    http = httpx.AsyncClient(timeout=5, follow_redirects=False)
    limiter = Window(redis, processes=settings.processes)

    vault = Vault(*settings.secret_keys)
    idempotency = Idempotency(vault)
    ring = KeyRing(db, vault)
    tokens = SessionTokens(ring, settings.public_url)
    authenticator = Authenticator(db, tokens, idle_days=settings.session_idle_days)
    trial = timedelta(days=settings.signup_trial_days) if variant.signup_trial else None
    sessions = Sessions(
        db,
        Issuers(settings.oidc_issuers, http),
        tokens,
        authenticator,
        journal.append,
        idle_days=settings.session_idle_days,
        signup_trial=trial,
    )
    guard = RequestGuard(
        authenticator,
        limiter,
        variant.ceilings_of,
        lowest_tier=variant.lowest_tier,
        trusted_proxies=settings.trusted_networks,
        ai_prefixes=ai_prefixes,
    )

    live = Redis.from_url(settings.redis_url.get_secret_value())
    fanout = Fanout(live)
    streams = Streams(db, fanout)
    allowance_of = variant.allowance_of(settings.allowances)
    processor = processor_of(settings)
    credits_ = Credits(db, idempotency, processor, allowance_of, fanout.announce)
    tiers = Tiers(variant.tiers)
    plans = Plans(
        *(db, processor, fanout.announce),
        tiers=tiers,
        grace=timedelta(days=settings.grace_days),
    )
    purchases = Purchases(
        *(db, idempotency, processor, plans, fanout.announce),
        tiers=tiers,
        trial_days=settings.plan_trial_days,
    )
    tasks = Tasks(
        *(db, idempotency, variant.agent_access, fanout),
        gate_days=settings.approval_days,
        allowance_of=allowance_of,
        weight_of=variant.weight_of,
    )
    decisions = Decisions(db, fanout, weight_of=variant.weight_of)

    mcp = mcp_wiring(settings, db, vault, fanout.announce)
    servers = Servers(
        *(db, vault, idempotency, mcp.egress, mcp.sessions, mcp.calling, mcp.watch),
        fanout.announce,
        allowance=variant.servers,
        has_pass=plans.has_pass,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await db.open()
            stack.push_async_callback(db.close)
            stack.push_async_callback(redis.aclose)
            stack.push_async_callback(live.aclose)
            stack.push_async_callback(fanout.aclose)
            stack.push_async_callback(limiter.aclose)
            stack.push_async_callback(http.aclose)
            stack.push_async_callback(mcp.sessions.aclose)
            stack.push_async_callback(processor.close)
            # What is here now stays for good: the collector need not look at it again.
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
        task_routes(tasks, decisions, streams, authenticator),
        me_routes(db, variant.name),
        agent_routes(Catalog(db), variant.agent_access),
        run_routes(db),
        event_routes(streams, authenticator),
        mcp_routes(servers),
        credit_routes(credits_),
        tier_routes(purchases),
        *([plan_routes(purchases)] if variant.sells_plans else []),
        *([pass_routes(purchases)] if variant.pass_price_cents is not None else []),
        webhook_routes(processor, credits_.take_payment, plans.sync),
        key_routes(Keys(db, authenticator, idempotency, journal.append)),
        sign_in_routes(sessions, variant.name, settings.oidc_issuers),
        logout_routes(sessions),
        jwks_routes(ring),
        health_routes({"postgres": db.ping}, {"redis": redis.ping, "temporal": engine.ping}),
        docs_routes("Rota"),
        billing_routes(variant.tiers, variant.pass_price_cents, allowance_of),
        *([_metrics_routes()] if settings.metrics_port is None else []),
        *extra_routers,
    ):
        # Into one flat table: a router inside of another is searched as a whole first.
        app.router.routes.extend(router.routes)
    # For a server that is told to stop: streams would go on for as long as it lets them.
    app.state.streams = streams
    app.openapi = lambda: describe(app, unlimited=UNLIMITED)  # type: ignore[method-assign]
    return app


def _metrics_routes() -> APIRouter:
    router = APIRouter(tags=["Health"], generate_unique_id_function=by_name)

    @router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return router
