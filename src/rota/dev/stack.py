"""The local stack: a set of components with one data directory.

async with Stack(path, components=("postgres", "redis"), durable=False) as stack:
    pool = await asyncpg.create_pool(stack.endpoints.database_url)
    await stack.redis.kill()
    await stack.redis.start()  # on the same port
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from rota.dev import CLIENT_ID, ports
from rota.dev.components import Demo, IdentityProvider, Model, Payments, Redis, Temporal
from rota.dev.directory import DataDirectory
from rota.dev.postgres import Postgres
from rota.dev.processes import Component, ComponentError, ComponentState, Site, Status

KINDS: Mapping[str, type[Component]] = {
    kind.name: kind for kind in (Postgres, Redis, Temporal, IdentityProvider, Payments, Model, Demo)
}
ALL = tuple(KINDS)
TEMPORAL_UI = "temporal-ui"
# The simulated Stripe server accepts any test key.
STRIPE_KEY = "sk_test_rota"

P = TypeVar("P", bound=Component)

RESTARTS = 3
BACKOFF_S = 1.0
# After this time without a crash, a component has all its restarts again.
STABLE_AFTER_S = 300.0


@dataclass(frozen=True)
class Endpoints:
    """Where the components are. Empty for a component that is not in the stack."""

    database_url: str
    # For the superuser, in the database `postgres`. None if the server is external.
    admin_database_url: str | None
    redis_url: str
    temporal_address: str
    temporal_ui_url: str | None
    issuer_url: str
    # The simulated Stripe server. None if Stripe itself is used.
    stripe_url: str | None
    model_url: str | None
    # The demonstration model and tool servers.
    demo_url: str | None


class Stack:
    """`ports` are the preferred ports. Components without one use any free port, and Temporal
    has its web UI only with one. Variables in `environ` can point to an external PostgreSQL,
    Redis, Temporal, Stripe or model."""

    def __init__(
        self,
        data: Path | DataDirectory,
        *,
        components: Collection[str] = ALL,
        durable: bool = True,
        on_change: Callable[[ComponentState], None] | None = None,
        ports: Mapping[str, int] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if unknown := set(components) - set(ALL):
            raise ValueError(f"Unknown components: {', '.join(sorted(unknown))}. Use: {ALL}")
        # The caller that has claimed a directory also releases it.
        self._borrowed = isinstance(data, DataDirectory)
        self.directory = data if isinstance(data, DataDirectory) else DataDirectory(data)
        self.names = tuple(name for name in ALL if name in components)
        self._durable = durable
        self._on_change = on_change or (lambda _: None)
        self._preferred_ports = dict(ports or {})
        self._environ = dict(environ or {})
        self._components: dict[str, Component] = {}
        self._crashed: asyncio.Queue[str] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Starts all components at the same time. They do not depend on each other."""
        if not self._borrowed:
            await self.directory.claim()
        self.site = Site(self.directory, self._durable, self._environ, self._changed)
        for name in self.names:
            self._components[name] = KINDS[name](self.site)
        self._choose_ports()
        await _start_together(self._components.values())

    async def add(self, *components: Component) -> None:
        """Starts more components. They stop before those that were there first."""
        self._components |= {each.name: each for each in components}
        await _start_together(components)

    async def stop(self) -> None:
        for component in reversed(self._components.values()):
            await component.stop()
        if not self._borrowed:
            self.directory.release()

    async def supervise(self) -> None:
        """Restarts components that crash. Raises ComponentError if one keeps crashing."""
        restarts: dict[str, int] = {}
        last: dict[str, float] = {}
        while True:
            name = await self._crashed.get()
            component = self.component(name)
            stable = time.monotonic() - last.get(name, 0) > STABLE_AFTER_S
            restarts[name] = 1 if stable else restarts.get(name, 0) + 1
            if restarts[name] > RESTARTS:
                why = f"{component.state.detail}, after {RESTARTS} restarts"
                raise ComponentError(name, why, component.log)
            await asyncio.sleep(BACKOFF_S * 2 ** (restarts[name] - 1))
            component.note = f"restart {restarts[name]} of {RESTARTS}"
            last[name] = time.monotonic()
            try:
                await component.start()
            except ComponentError:
                self._crashed.put_nowait(name)

    def component(self, name: str) -> Component:
        return self._components[name]

    @property
    def postgres(self) -> Postgres:
        return self._typed(Postgres)

    @property
    def redis(self) -> Redis:
        return self._typed(Redis)

    @property
    def temporal(self) -> Temporal:
        return self._typed(Temporal)

    @property
    def idp(self) -> IdentityProvider:
        return self._typed(IdentityProvider)

    @property
    def stripe(self) -> Payments:
        return self._typed(Payments)

    @property
    def model(self) -> Model:
        return self._typed(Model)

    @property
    def demo(self) -> Demo:
        return self._typed(Demo)

    @property
    def endpoints(self) -> Endpoints:
        has = self._components.__contains__
        return Endpoints(
            database_url=self.postgres.url if has("postgres") else "",
            admin_database_url=self.postgres.admin_url if has("postgres") else None,
            redis_url=self.redis.url if has("redis") else "",
            temporal_address=self.temporal.address if has("temporal") else "",
            temporal_ui_url=self.temporal.ui_url if has("temporal") else None,
            issuer_url=self.idp.url if has("idp") else "",
            stripe_url=self.stripe.url if has("stripe") else None,
            model_url=self.model.url if has("model") and self.model.running else None,
            demo_url=self.demo.url if has("demo") else None,
        )

    def environment(self) -> dict[str, str]:
        """The settings that point the service and the worker to these components."""
        at = self.endpoints
        # Issuers from the environment stay configured.
        issuers = json.loads(self._environ.get("ROTA_OIDC_ISSUERS") or "[]")
        ours = {"issuer": at.issuer_url, "clientId": CLIENT_ID, "name": "Development"}
        variables = {
            "ROTA_DATABASE_URL": at.database_url,
            "ROTA_REDIS_URL": at.redis_url,
            "ROTA_TEMPORAL_ADDRESS": at.temporal_address,
            "ROTA_OIDC_ISSUERS": json.dumps([*issuers, ours]) if at.issuer_url else "",
            "ROTA_MODEL_URL": at.model_url,
        }
        if at.stripe_url:
            variables |= {
                "ROTA_STRIPE_SECRET_KEY": STRIPE_KEY,
                "ROTA_STRIPE_WEBHOOK_SECRETS": self.stripe.webhook_secret,
                "ROTA_STRIPE_API_URL": at.stripe_url,
            }
        return {name: value for name, value in variables.items() if value}

    def _typed(self, kind: type[P]) -> P:
        component = self._components[kind.name]
        assert isinstance(component, kind)
        return component

    def _choose_ports(self) -> None:
        taken: set[int] = set()
        # Wanted ports first, so that no other component takes one by chance.
        wanted_first = sorted(
            self._components.values(), key=lambda each: each.name not in self._preferred_ports
        )
        for component in wanted_first:
            if component.external:
                component.note = f"external: {component.variable}"
                continue
            component.port, component.note = self._choose(component.name, taken)
            if isinstance(component, Temporal) and TEMPORAL_UI in self._preferred_ports:
                component.ui_port, note = self._choose(TEMPORAL_UI, taken)
                component.note = "; ".join(filter(None, (component.note, note)))

    def _choose(self, name: str, taken: set[int]) -> tuple[int, str]:
        preferred = self._preferred_ports.get(name)
        port = ports.find(preferred, taken=taken)
        taken.add(port)
        return port, f"port {preferred} is in use" if preferred and port != preferred else ""

    def _changed(self, state: ComponentState) -> None:
        if state.status is Status.CRASHED:
            self._crashed.put_nowait(state.name)
        self._on_change(state)


async def _start_together(components: Iterable[Component]) -> None:
    async with start_group() as group:
        for component in components:
            group.create_task(component.start())


@asynccontextmanager
async def start_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks that start components. The error of the first one that fails is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    # Not `except*`, which wraps the error again before Python 3.11.4.
    except ExceptionGroup as failures:
        if (failed := failures.subgroup(ComponentError)) is None:
            raise
        raise failed.exceptions[0] from None
