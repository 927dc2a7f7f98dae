"""The local stack: the parts of your choice, in one data directory, as one thing.

async with Stack(path, parts=("postgres", "redis"), durable=False) as stack:
    pool = await asyncpg.create_pool(stack.endpoints.database_url)
    await stack.redis.kill()
    await stack.redis.start()  # on the same port
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from rota.dev import CLIENT_ID, ports
from rota.dev.components import IdentityProvider, Model, Payments, Redis, Temporal
from rota.dev.directory import DataDirectory
from rota.dev.postgres import Postgres
from rota.dev.processes import Part, PartError, PartState, Site, Status

KINDS: Mapping[str, type[Part]] = {
    kind.name: kind for kind in (Postgres, Redis, Temporal, IdentityProvider, Payments, Model)
}
ALL = tuple(KINDS)
TEMPORAL_UI = "temporal-ui"
# The stand-in takes any that looks like one for tests.
STRIPE_KEY = "sk_test_rota"

P = TypeVar("P", bound=Part)

RESTARTS = 3
BACKOFF_S = 1.0
FORGIVEN_AFTER_S = 300.0


@dataclass(frozen=True)
class Endpoints:
    """Where the parts are. Empty for a part that the stack was made without."""

    database_url: str
    # The superuser's, in the database `postgres`; None where the server is not ours.
    admin_database_url: str | None
    redis_url: str
    temporal_address: str
    temporal_ui_url: str | None
    issuer_url: str
    # Of the stand-in; None where Stripe itself is used.
    stripe_url: str | None
    model_url: str | None


class Stack:
    """`ports` names the wanted ones; others are free ones of no meaning. Temporal has
    its UI only where a port is wanted for it. `environ` may say that PostgreSQL, Redis,
    Temporal, Stripe or the model is somebody else's."""

    def __init__(
        self,
        data: Path | DataDirectory,
        *,
        parts: Collection[str] = ALL,
        durable: bool = True,
        on_change: Callable[[PartState], None] | None = None,
        ports: Mapping[str, int] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if unknown := set(parts) - set(ALL):
            raise ValueError(f"unknown parts: {', '.join(sorted(unknown))}; there are {ALL}")
        # A directory that is already claimed stays its owner's to release.
        self._borrowed = isinstance(data, DataDirectory)
        self.directory = data if isinstance(data, DataDirectory) else DataDirectory(data)
        self.names = tuple(name for name in ALL if name in parts)
        self._durable = durable
        self._on_change = on_change or (lambda _: None)
        self._wanted_ports = dict(ports or {})
        self._environ = dict(environ or {})
        self._parts: dict[str, Part] = {}
        self._deaths: asyncio.Queue[str] = asyncio.Queue()

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
        """Start the parts, all at the same time: none of them needs another."""
        if not self._borrowed:
            await self.directory.claim()
        self.site = Site(self.directory, self._durable, self._environ, self._changed)
        for name in self.names:
            self._parts[name] = KINDS[name](self.site)
        self._choose_ports()
        await _start_together(self._parts.values())

    async def add(self, *parts: Part) -> None:
        """Start more parts, which are stopped before all those they may need."""
        self._parts |= {part.name: part for part in parts}
        await _start_together(parts)

    async def stop(self) -> None:
        for part in reversed(self._parts.values()):
            await part.stop()
        if not self._borrowed:
            self.directory.release()

    async def supervise(self) -> None:
        """Start parts again that end by themselves; raise when one keeps ending."""
        restarts: dict[str, int] = {}
        last: dict[str, float] = {}
        while True:
            name = await self._deaths.get()
            part = self.part(name)
            forgiven = time.monotonic() - last.get(name, 0) > FORGIVEN_AFTER_S
            restarts[name] = 1 if forgiven else restarts.get(name, 0) + 1
            if restarts[name] > RESTARTS:
                why = f"{part.state.detail}, after {RESTARTS} restarts"
                raise PartError(name, why, part.log)
            await asyncio.sleep(BACKOFF_S * 2 ** (restarts[name] - 1))
            part.note = f"restarted {restarts[name]} of at most {RESTARTS} times"
            last[name] = time.monotonic()
            try:
                await part.start()
            except PartError:
                self._deaths.put_nowait(name)

    def part(self, name: str) -> Part:
        return self._parts[name]

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
    def endpoints(self) -> Endpoints:
        has = self._parts.__contains__
        return Endpoints(
            database_url=self.postgres.url if has("postgres") else "",
            admin_database_url=self.postgres.admin_url if has("postgres") else None,
            redis_url=self.redis.url if has("redis") else "",
            temporal_address=self.temporal.address if has("temporal") else "",
            temporal_ui_url=self.temporal.ui_url if has("temporal") else None,
            issuer_url=self.idp.url if has("idp") else "",
            stripe_url=self.stripe.url if has("stripe") else None,
            model_url=self.model.url if has("model") and self.model.running else None,
        )

    def environment(self) -> dict[str, str]:
        """The settings that lead the service, and whatever else runs, to these parts."""
        at = self.endpoints
        # Issuers of one's own stay beside ours.
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
        part = self._parts[kind.name]
        assert isinstance(part, kind)
        return part

    def _choose_ports(self) -> None:
        taken: set[int] = set()
        # Wanted ports first, so that none is given away by chance.
        for part in sorted(self._parts.values(), key=lambda p: p.name not in self._wanted_ports):
            if part.external:
                part.note = f"not ours: {part.variable}"
                continue
            part.port, part.note = self._choose(part.name, taken)
            if isinstance(part, Temporal) and TEMPORAL_UI in self._wanted_ports:
                part.ui_port, note = self._choose(TEMPORAL_UI, taken)
                part.note = "; ".join(filter(None, (part.note, note)))

    def _choose(self, name: str, taken: set[int]) -> tuple[int, str]:
        wanted = self._wanted_ports.get(name)
        port = ports.find(wanted, besides=taken)
        taken.add(port)
        return port, f"port {wanted} is taken" if wanted and port != wanted else ""

    def _changed(self, state: PartState) -> None:
        if state.status is Status.DIED:
            self._deaths.put_nowait(state.name)
        self._on_change(state)


async def _start_together(parts: Iterable[Part]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part.start())
    except* PartError as failures:
        raise failures.exceptions[0] from None
