"""What the service asks of a payment processor, and what a processor tells it.

Money is in whole cents here, as processors have it. An account's id travels
with everything that is made for it, so what a processor tells names its account.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from rota.platform.errors import ApiError, ValidationFailed

# What is sold by the month: a tier's plan by its name, or the personal add-on.
CONNECT_PASS = "connect_pass"

Status = Literal["incomplete", "trialing", "active", "past_due", "ended"]


class PaymentFailed(ApiError):
    status = 402
    code = "PAYMENT_PROCESSOR_ERROR"


class BadSignature(ValidationFailed):
    """What claims to come from the processor does not, or is too old."""


@dataclass(frozen=True, slots=True)
class Payer:
    account_id: UUID
    # None until the account has paid once.
    customer_id: str | None
    email: str | None


@dataclass(frozen=True, slots=True)
class Checkout:
    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Product:
    """Something sold by the month, at a price for each seat."""

    name: str
    title: str
    cents: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as the processor has it now."""

    id: str
    account_id: UUID
    customer_id: str
    # The name of what is paid for at the next renewal.
    product: str
    seats: int
    status: Status
    period_start: datetime
    period_end: datetime
    cancel_at_period_end: bool
    # The subscription that this one was bought to take the place of.
    replaces: str | None


@dataclass(frozen=True, slots=True)
class Payment:
    """A top-up that has been paid."""

    # The processor's name of the payment, the same in everything that it tells about it.
    id: str
    account_id: UUID
    customer_id: str | None
    cents: int
    # Of these, given back so far.
    refunded_cents: int


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """Something happened to a subscription; the processor is asked what it is like now."""

    subscription_id: str
    account_id: UUID


# `id` names the message itself, so that one that comes again is known.
@dataclass(frozen=True, slots=True)
class Notice:
    id: str
    about: Payment | SubscriptionChanged


class Processor(Protocol):
    """Every call raises PaymentFailed when the processor is down or refuses.

    A `key` names an intent: however often it is sent, the processor acts once.
    """

    async def top_up_checkout(self, payer: Payer, cents: int, key: str) -> Checkout: ...

    async def plan_checkout(
        self,
        payer: Payer,
        product: str,
        seats: int,
        key: str,
        *,
        replaces: str | None = None,
        trial_days: int = 0,
    ) -> Checkout: ...

    async def subscription(self, subscription_id: str) -> Subscription: ...

    async def change(
        self, subscription_id: str, product: str, seats: int, key: str
    ) -> Subscription:
        """Another product from the next period on; nothing is paid or given back now."""

    async def cancel(self, subscription_id: str, *, at_period_end: bool) -> Subscription:
        """Sets or clears the end at the period's end."""

    async def end(self, subscription_id: str) -> None:
        """Ends it at once, with what was paid ahead given back. Fine when it has ended."""

    def notice(self, body: bytes, signature: str) -> Notice | None:
        """What a webhook says, None when it is nothing of ours; BadSignature if it is forged."""

    def payments(self, since: datetime) -> AsyncIterator[Payment]:
        """Every top-up that was paid since then, for comparing books."""

    def subscriptions(self) -> AsyncIterator[Subscription]:
        """Every subscription that is live, for comparing books."""

    async def offer(self, products: tuple[Product, ...]) -> None:
        """Makes sure that the processor sells these, at these prices."""

    async def close(self) -> None: ...


class NoProcessor:
    """Stands where none is set up, and says so."""

    async def close(self) -> None:
        pass

    async def top_up_checkout(self, payer: Payer, cents: int, key: str) -> Checkout:
        raise _not_set_up()

    async def plan_checkout(
        self,
        payer: Payer,
        product: str,
        seats: int,
        key: str,
        *,
        replaces: str | None = None,
        trial_days: int = 0,
    ) -> Checkout:
        raise _not_set_up()

    async def subscription(self, subscription_id: str) -> Subscription:
        raise _not_set_up()

    async def change(
        self, subscription_id: str, product: str, seats: int, key: str
    ) -> Subscription:
        raise _not_set_up()

    async def cancel(self, subscription_id: str, *, at_period_end: bool) -> Subscription:
        raise _not_set_up()

    async def end(self, subscription_id: str) -> None:
        raise _not_set_up()

    def notice(self, body: bytes, signature: str) -> Notice | None:
        raise _not_set_up()

    def payments(self, since: datetime) -> AsyncIterator[Payment]:
        raise _not_set_up()

    def subscriptions(self) -> AsyncIterator[Subscription]:
        raise _not_set_up()

    async def offer(self, products: tuple[Product, ...]) -> None:
        raise _not_set_up()


def _not_set_up() -> PaymentFailed:
    return PaymentFailed(
        "Payments are not set up here. Ask the operator to set ROTA_STRIPE_SECRET_KEY."
    )
