"""A service and a simulated Stripe server, whose clocks move together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
from typer.testing import CliRunner, Result

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.auth import secrets
from rota.auth.caller import ALL_SCOPES
from rota.cli import cli
from rota.dev.stack import Stack
from rota.events.relay import Relay
from rota.payments.stripe import Stripe
from rota.payments.turns import PaymentTurns
from rota.plans.allowance import plan_allowance
from rota.plans.service import Plans
from rota.plans.tiers import Tiers, products
from rota.platform import ids
from rota.platform.db import Database
from rota.variants import VARIANTS
from tests.payments.stripe_server import KEY, StripeServer
from tests.service import Person, Service, environment
from tests.tasks.world import newcomer

# The invoice of a renewal is a draft for this long. Then it is paid, or the payment fails.
PAID_AFTER = timedelta(hours=1)


@dataclass
class World:
    service: Service
    stripe_server: StripeServer
    # What a worker also runs: the sweep and the relay.
    plans: Plans
    relay: Relay
    ahead: timedelta = field(default_factory=timedelta)

    @classmethod
    @asynccontextmanager
    async def start(
        cls, stack: Stack, variant: str, name: str, **changes: Any
    ) -> AsyncIterator["World"]:
        async with (
            StripeServer.start() as stripe_server,
            Service.start(
                stack, variant=variant, name=name, **stripe_server.settings | changes
            ) as service,
        ):
            settings, sold = service.settings, VARIANTS[service.variant]
            db = Database(service.database_url, pool_size=4)
            await db.open()
            stripe = Stripe(KEY, return_url=settings.return_url, api_url=stripe_server.url)
            await stripe.offer(products(sold.tiers, sold.pass_price_cents))
            grace = timedelta(days=settings.grace_days)
            allowance_of = plan_allowance(sold.tier_allowance({}), sold.lowest_tier, grace)
            turns, tiers = PaymentTurns(db), Tiers(sold.tiers)
            plans = Plans(db, stripe, turns, allowance_of, tiers=tiers, grace=grace)
            await sync(service.database_url, catalog_folder())
            await stripe_server.send_to(f"http://127.0.0.1:{settings.port}/webhooks/stripe")
            try:
                yield cls(service, stripe_server, plans, Relay(db, plans.handlers))
            finally:
                await stripe.close()
                await db.close()

    @property
    def grace(self) -> timedelta:
        return timedelta(days=self.service.settings.grace_days)

    def now(self) -> datetime:
        """Replaces the service's clock."""
        return datetime.now(UTC) + self.ahead

    async def move_clock(self, *, days: float = 0, to: datetime | None = None) -> None:
        """Moves both clocks forward, to a few seconds after `to`."""
        passed = timedelta(days=days) if to is None else to - self.now() + timedelta(seconds=5)
        self.ahead += passed
        await self.stripe_server.advance(to=self.now())

    async def clear_faults(self) -> None:
        """Removes all faults and delivers the held webhooks."""
        await self.stripe_server.fault("/nowhere", "500", times=0)
        await self.stripe_server.release()

    async def sweep(self) -> None:
        """Does what a worker does every few seconds."""
        await self.plans.expire_due(100)
        while await self.relay.step():
            pass

    async def person(self) -> Person:
        return await newcomer(self.service, tier="basic")

    async def company(self, role: str = "owner") -> Person:
        """A person with a role in a company and an API key of the company."""
        user_id, account_id = ids.new_uuid(), ids.new_uuid()
        async with self.service.owner() as connection:
            await connection.execute(
                """
                WITH person AS (INSERT INTO users (id, name) VALUES ($1, 'Test'))
                INSERT INTO accounts (id, kind, name)
                VALUES ($1, 'personal', 'Test'), ($2, 'company', 'Acme')
                """,
                user_id,
                account_id,
            )
            await connection.execute(
                "INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, $3)",
                account_id,
                user_id,
                role,
            )
        return await self._with_key(account_id, user_id)

    async def colleague(self, company: Person) -> Person:
        """Another owner of the company, with a key of the company."""
        user_id = ids.new_uuid()
        async with self.service.owner() as connection:
            await connection.execute(
                """
                WITH person AS (INSERT INTO users (id, name) VALUES ($1, 'Test'))
                INSERT INTO accounts (id, kind, name) VALUES ($1, 'personal', 'Test')
                """,
                user_id,
            )
            await connection.execute(
                "INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, 'owner')",
                company.user_id,
                user_id,
            )
        return await self._with_key(company.user_id, user_id)

    async def with_new_key(self, person: Person) -> Person:
        """The same account with a new key, which no process has cached yet."""
        return await self._with_key(person.user_id, person.user_id)

    async def _with_key(self, account_id: UUID, user_id: UUID) -> Person:
        secret = secrets.new_secret()
        async with self.service.owner() as connection:
            await connection.execute(
                """
                WITH key AS (
                    INSERT INTO api_keys
                        (account_id, id, user_id, name, prefix, secret_hash, scopes)
                    VALUES ($1, $2, $3, 'test', 'rota_', $4, $5)
                )
                INSERT INTO api_key_hashes (secret_hash, account_id, user_id, key_id)
                VALUES ($4, $1, $3, $2)
                """,
                account_id,
                uuid4(),
                user_id,
                secrets.hash_of(secret),
                list(ALL_SCOPES),
            )
        return Person(self.service, "key", secret, account_id)

    async def buy(self, person: Person, plan: str, **more: Any) -> dict[str, Any]:
        """Subscribes and pays. Returns the subscription overview."""
        response = await person.post("/api/subscriptions/subscribe", {"plan": plan, **more})
        assert response.status_code == 200, response.text
        await self.stripe_server.pay(response.json()["checkoutUrl"])
        await self.stripe_server.settled()
        return await overview(person)

    async def row(self, person: Person, product: str = "plan") -> dict[str, Any]:
        """The stored subscription."""
        async with self.service.owner() as connection:
            found = await connection.fetchrow(
                "SELECT * FROM subscriptions WHERE account_id = $1 AND product = $2",
                person.user_id,
                product,
            )
        return dict(found) if found else {}

    async def customer(self, person: Person) -> str:
        async with self.service.owner() as connection:
            found: str = await connection.fetchval(
                "SELECT customer_id FROM customers WHERE account_id = $1", person.user_id
            )
        return found

    async def stripe_statuses(self, person: Person) -> dict[str, str]:
        """The status at Stripe of each subscription of the account, by ID."""
        found = await self.stripe_server.api(
            "GET", "/v1/subscriptions", params={"status": "all", "limit": "100"}
        )
        account = str(person.user_id)
        return {s["id"]: s["status"] for s in found["data"] if s["metadata"]["account"] == account}

    async def rota(self, *arguments: str) -> Result:
        """Runs `rota admin payments …` in a thread, because it has its own event loop."""
        env = dict(environment(self.service.settings))
        return await asyncio.to_thread(
            lambda: CliRunner().invoke(cli, ["admin", "payments", *arguments], env=env)
        )


async def overview(person: Person) -> dict[str, Any]:
    response = await person.get("/api/subscriptions")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def subscription_state(person: Person) -> tuple[str | None, str, str]:
    """Status and tier of the subscription, and the account's tier."""
    seen = await overview(person)
    subscription = seen["subscription"] or {}
    return subscription.get("status"), subscription.get("tier", ""), seen["effectiveTier"]


async def tier_of(person: Person) -> str:
    return str((await overview(person))["effectiveTier"])


async def events_of(world: World, account_id: UUID) -> list[str]:
    async with world.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT type FROM events WHERE account_id = $1 ORDER BY sequence", account_id
        )
    return [row["type"] for row in rows]


def refused(response: httpx.Response) -> tuple[int, str | None]:
    return response.status_code, response.json()["error"].get("code")
