"""Builds the parts of the service from settings: for the API, the worker, commands and tests. Its
bases build what connects (`foundation`), what sends (`outbound`) and what deletes (`data.parts`).

A part is built when it is first used, so a command pays only for what it needs. Nothing connects
before `open`, so the API can be described without a running database.
"""

from dataclasses import replace
from datetime import timedelta
from functools import cached_property

import httpx

from rota.agents.catalog import Catalog
from rota.audit.service import AuditTrail
from rota.auth.codes import CodeExchange
from rota.auth.cookies import Cookies
from rota.auth.issuers import Issuers
from rota.auth.keys import Keys
from rota.auth.operator_keys import OperatorKeys
from rota.auth.profiles import Profiles
from rota.auth.sessions import Sessions
from rota.companies.invitations import Invitations
from rota.companies.service import Companies
from rota.credits.allowance import AllowanceOf
from rota.credits.payers import Payers
from rota.credits.service import Credits
from rota.data.parts import DataParts
from rota.events import journal
from rota.events.stream import Streams
from rota.limits.window import Window
from rota.mcp import sessions as tool_sessions
from rota.mcp.client import ToolClient
from rota.mcp.health import Health
from rota.mcp.service import Servers
from rota.mcp.session import Timeouts
from rota.mcp.tool_calls import ToolCalls
from rota.notifications.parts import NotificationAssembly
from rota.payments.turns import PaymentTurns
from rota.plans.allowance import TierAllowance, plan_allowance
from rota.plans.purchases import Purchases
from rota.plans.reconcile import Reconciliation
from rota.plans.service import Plans
from rota.plans.tiers import Tiers
from rota.platform.http.origins import OwnOrigin
from rota.platform.schema import SchemaChecks
from rota.platform.settings import Settings
from rota.receipts.service import Receipts
from rota.rules.service import Rules
from rota.runs import model_names
from rota.runs.forks import Forks
from rota.runs.retries import Retries
from rota.runs.step_events import stored_text
from rota.runs.timeline import Timelines
from rota.schedules.service import Schedules
from rota.tasks import overview_queries
from rota.tasks.batches import Batches
from rota.tasks.creation import TaskCreation
from rota.tasks.overview import Overview
from rota.tasks.reviews import Reviews
from rota.tasks.service import Tasks
from rota.variants import VARIANTS


class Composition(DataParts):
    def __init__(
        self, settings: Settings, *, pool_size: int | None = None, for_worker: bool = False
    ) -> None:
        super().__init__(settings, pool_size=pool_size)
        self._for_worker = for_worker
        self.variant = VARIANTS[settings.variant]

    @cached_property
    def schema_checks(self) -> SchemaChecks:
        checks = SchemaChecks()
        self._closes(checks.aclose)
        return checks

    @cached_property
    def streams(self) -> Streams:
        settings = self.settings
        return Streams(
            self.db,
            self.fanout,
            self.live_watch,
            stored_text,
            most=settings.streams,
            most_per_account=settings.streams_per_account,
        )

    @cached_property
    def limiter(self) -> Window:
        limiter = Window(self.limiter_redis, processes=self.settings.processes)
        self._closes(limiter.aclose)
        return limiter

    @cached_property
    def cookies(self) -> Cookies:
        settings = self.settings
        origin = OwnOrigin(settings.public_url, production=settings.env == "production")
        return Cookies(origin, idle_days=settings.session_idle_days)

    @cached_property
    def issuer_client(self) -> httpx.AsyncClient:
        http = httpx.AsyncClient(timeout=5, follow_redirects=False)
        self._closes(http.aclose)
        return http

    @cached_property
    def issuers(self) -> Issuers:
        return Issuers(self.settings.oidc_issuers, self.issuer_client)

    @cached_property
    def operator_keys(self) -> OperatorKeys:
        return OperatorKeys(self.db, self.keys, self._signup_trial)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(
            self.db,
            self.issuers,
            CodeExchange(self.issuers, self.issuer_client),
            self.session_tokens,
            self.authenticator,
            journal.append,
            idle_days=self.settings.session_idle_days,
            signup_trial=self._signup_trial,
            cells=self.settings.cells,
        )

    @property
    def _signup_trial(self) -> timedelta | None:
        days = timedelta(days=self.settings.signup_trial_days)
        return days if self.variant.signup_trial else None

    @cached_property
    def profiles(self) -> Profiles:
        return Profiles(self.db)

    @cached_property
    def keys(self) -> Keys:
        return Keys(
            self.db, self.authenticator, self.idempotency, journal.append, self.settings.cell
        )

    @cached_property
    def companies(self) -> Companies:
        return Companies(self.db, self.idempotency, tier=self.variant.lowest_tier)

    @cached_property
    def invitations(self) -> Invitations:
        return Invitations(
            self.db,
            self.authenticator,
            self.idempotency,
            public_url=self.settings.public_url,
            cell=self.settings.cell,
        )

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(self.db)

    @cached_property
    def tier_allowance(self) -> TierAllowance:
        return self.variant.tier_allowance(self.settings.allowances)

    @cached_property
    def allowance_of(self) -> AllowanceOf:
        return plan_allowance(self.tier_allowance, self.variant.lowest_tier, self.grace)

    @cached_property
    def credits(self) -> Credits:
        return Credits(
            self.db,
            self.idempotency,
            self.processor,
            self.payers,
            self.turns,
            self.allowance_of,
            overview_queries.labels,
        )

    @cached_property
    def turns(self) -> PaymentTurns:
        return PaymentTurns(self.db)

    @cached_property
    def payers(self) -> Payers:
        return Payers(self.db, self.processor, self.turns)

    @cached_property
    def tiers(self) -> Tiers:
        return Tiers(self.variant.tiers)

    @cached_property
    def plans(self) -> Plans:
        return Plans(
            self.db,
            self.processor,
            self.turns,
            self.allowance_of,
            tiers=self.tiers,
            grace=self.grace,
        )

    @property
    def grace(self) -> timedelta:
        """How long an unpaid plan keeps its tier."""
        return timedelta(days=self.settings.grace_days)

    @cached_property
    def purchases(self) -> Purchases:
        return Purchases(
            self.db,
            self.idempotency,
            self.processor,
            self.payers,
            self.plans,
            tiers=self.tiers,
            trial_days=self.settings.plan_trial_days,
        )

    @cached_property
    def reconciliation(self) -> Reconciliation:
        return Reconciliation(
            self.db,
            self.processor,
            self.credits.sync_payment,
            self.plans.sync,
            position=self.tiers.position,
            grace=self.grace,
        )

    @property
    def gate_time(self) -> timedelta:
        """How long a gate waits for a decision."""
        return timedelta(days=self.settings.approval_days)

    @cached_property
    def task_creation(self) -> TaskCreation:
        return TaskCreation(
            self.variant.agent_access,
            gate_time=self.gate_time,
            allowance_of=self.allowance_of,
            weight_of=self.variant.weight_of,
        )

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks(self.db, self.idempotency, self.task_creation, self.schema_checks)

    @cached_property
    def batches(self) -> Batches:
        return Batches(self.db, self.idempotency, self.task_creation, self.schema_checks)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(self.db, self.idempotency, self.task_creation, self.schema_checks)

    @cached_property
    def reviews(self) -> Reviews:
        return Reviews(
            self.db, self.idempotency, self.schema_checks, weight_of=self.variant.weight_of
        )

    @cached_property
    def rules(self) -> Rules:
        return Rules(self.db, self.idempotency)

    @cached_property
    def overview(self) -> Overview:
        return Overview(self.db)

    @cached_property
    def timelines(self) -> Timelines:
        return Timelines(self.db)

    @cached_property
    def audit_trail(self) -> AuditTrail:
        return AuditTrail(self.db, self.signer, self.settings.public_url)

    @cached_property
    def receipts(self) -> Receipts:
        return Receipts(self.db, self.signer, self.settings.public_url)

    @cached_property
    def retries(self) -> Retries:
        return Retries(self.db, self.task_creation)

    @cached_property
    def forks(self) -> Forks:
        settings = self.settings
        models = model_names.configured(settings.models, settings.model_url)
        return Forks(self.db, self.idempotency, self.task_creation, models)

    @cached_property
    def tool_limits(self) -> tool_sessions.Limits:
        settings = self.settings
        limits = tool_sessions.Limits(sessions=settings.mcp_sessions, idle_s=settings.mcp_idle_s)
        if self._for_worker:
            # An account has more to do here, and its runs can wait as long as a call takes.
            return replace(
                limits, account_sessions=16, account_calls=32, wait_s=settings.mcp_call_s
            )
        return limits

    @cached_property
    def tool_sessions(self) -> tool_sessions.Sessions:
        settings = self.settings
        sessions = tool_sessions.Sessions(
            self.egress,
            Timeouts(settings.mcp_connect_s, settings.mcp_call_s),
            self.tool_limits,
        )
        self._closes(sessions.aclose)
        return sessions

    @cached_property
    def server_health(self) -> Health:
        return Health(self.db, check_every_s=self.settings.mcp_check_minutes * 60)

    @cached_property
    def tool_client(self) -> ToolClient:
        return ToolClient(self.tool_sessions, self.vault, self.server_health)

    @cached_property
    def tool_calls(self) -> ToolCalls:
        settings = self.settings
        return ToolCalls(
            self.db,
            self.idempotency,
            self.tool_client,
            self.schema_checks,
            # Waiting for the account's turn, for a call and for a session, connecting, listing the
            # tools and calling one of them, and once more if the session has ended.
            max_call_s=2
            * (3 * self.tool_limits.wait_s + settings.mcp_connect_s + 2 * settings.mcp_call_s),
        )

    @cached_property
    def servers(self) -> Servers:
        return Servers(
            self.db,
            self.vault,
            self.idempotency,
            self.egress,
            self.tool_sessions,
            self.tool_client,
            self.tool_calls,
            self.server_health,
            server_limit=self.variant.servers,
            has_pass=self.plans.has_pass,
        )

    @cached_property
    def notifications(self) -> NotificationAssembly:
        return NotificationAssembly(self.settings, self.db, self.vault, self.egress)
