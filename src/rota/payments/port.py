"""The interface to a payment processor.

Money is in whole cents, as processors count it. Every object that is created at the processor
carries the account's ID, so each message from the processor names its account.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from rota.platform.errors import ApiError, ValidationFailed

# The product name of the personal add-on. The other products have the names of their tiers.
CONNECT_PASS = "connect_pass"

Status = Literal["incomplete", "trialing", "active", "past_due", "ended"]


class PaymentFailed(ApiError):
    status = 402
    code = "PAYMENT_PROCESSOR_ERROR"


class ProcessorUnavailable(PaymentFailed):
    """The processor is down, or refuses every request. The request is not at fault."""


class SubscriptionUnknown(PaymentFailed):
    """The processor has no such subscription, as after a change to another of its accounts."""

    def __init__(self, subscription_id: str) -> None:
        super().__init__(
            "The payment processor does not know this subscription. Ask the operator of the "
            "service."
        )
        self.subscription_id = subscription_id


class CustomerUnknown(PaymentFailed):
    """The processor has no such customer. It may have been deleted there."""

    def __init__(self, customer_id: str) -> None:
        super().__init__("The payment processor does not know this customer. Try again.")
        self.customer_id = customer_id


class PaymentsNotConfigured(PaymentFailed):
    def __init__(self) -> None:
        super().__init__("This service does not take payments. Ask its operator.")


class BadSignature(ValidationFailed):
    """A webhook request that the processor did not sign, or that is too old."""

    def __init__(self) -> None:
        super().__init__(
            "The Stripe-Signature header does not match the request body, or is too old. Check "
            "the webhook endpoint's secret, and that no proxy changes the body."
        )


@dataclass(frozen=True, slots=True)
class Payer:
    account_id: UUID
    customer_id: str


@dataclass(frozen=True, slots=True)
class Checkout:
    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product with a monthly price for each seat."""

    name: str
    title: str
    price_cents: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """The current state of a subscription at the processor."""

    id: str
    account_id: UUID
    customer_id: str
    # The product that the next renewal pays for.
    product: str
    seats: int
    status: Status
    period_start: datetime
    period_end: datetime
    cancel_at_period_end: bool
    # The subscription that this one replaces.
    replaces: str | None
    # False until the period's invoice is paid. A renewal is paid about an hour after it begins.
    paid: bool = True


@dataclass(frozen=True, slots=True)
class Payment:
    """A paid top-up."""

    # The processor's ID of the payment. It is the same in every message about the payment.
    id: str
    account_id: UUID
    customer_id: str | None
    amount_cents: int


@dataclass(frozen=True, slots=True)
class PaymentState:
    """The current state of a paid top-up at the processor."""

    payment: Payment
    # Without refunds that failed.
    refunded_cents: int
    # What the payer's bank took back in disputes and did not return.
    disputed_cents: int


@dataclass(frozen=True, slots=True)
class PaymentChanged:
    """A hint that a payment was refunded or disputed. The processor has its current state."""

    payment_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """A hint that a subscription has changed. The processor has its current state."""

    subscription_id: str
    account_id: UUID


WebhookEvent = Payment | PaymentChanged | SubscriptionChanged


class Processor(Protocol):
    """Every call raises PaymentFailed if the processor is down or refuses.

    `key` is an idempotency key: the processor acts once, no matter how often it is sent.
    """

    async def create_customer(self, account_id: UUID, email: str | None, key: str) -> str:
        """Returns the ID of the new customer."""

    async def top_up_checkout(self, payer: Payer, amount_cents: int, key: str) -> Checkout: ...

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

    async def change(self, subscription_id: str, product: str, seats: int) -> Subscription:
        """Changes the product from the next period on. No money moves now."""

    async def cancel(self, subscription_id: str, *, at_period_end: bool) -> Subscription:
        """Sets or clears the cancellation at the end of the period."""

    async def end(self, subscription_id: str) -> None:
        """Ends it now and credits the unused part of what was paid. Can be repeated."""

    def read_webhook(self, body: bytes, signature: str) -> WebhookEvent | None:
        """Returns None for an event that is irrelevant here. Raises BadSignature."""

    async def payment(self, payment_id: str) -> PaymentState | None:
        """Returns None for a payment that is not a top-up of this service."""

    def payments(self, since: datetime, *, changed_since: datetime) -> AsyncIterator[PaymentState]:
        """Every top-up that was paid since then, or refunded or disputed since `changed_since`."""

    def subscriptions(self) -> AsyncIterator[Subscription]:
        """Every live subscription."""

    async def offer(self, products: tuple[Product, ...]) -> None:
        """Creates these products and prices at the processor, or updates them."""

    async def close(self) -> None: ...


class NoProcessor:
    """Used if no processor is configured. Every call fails and says so."""

    async def close(self) -> None:
        pass

    async def create_customer(self, account_id: UUID, email: str | None, key: str) -> str:
        raise PaymentsNotConfigured

    async def top_up_checkout(self, payer: Payer, amount_cents: int, key: str) -> Checkout:
        raise PaymentsNotConfigured

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
        raise PaymentsNotConfigured

    async def subscription(self, subscription_id: str) -> Subscription:
        raise PaymentsNotConfigured

    async def change(self, subscription_id: str, product: str, seats: int) -> Subscription:
        raise PaymentsNotConfigured

    async def cancel(self, subscription_id: str, *, at_period_end: bool) -> Subscription:
        raise PaymentsNotConfigured

    async def end(self, subscription_id: str) -> None:
        raise PaymentsNotConfigured

    def read_webhook(self, body: bytes, signature: str) -> WebhookEvent | None:
        raise PaymentsNotConfigured

    async def payment(self, payment_id: str) -> PaymentState | None:
        raise PaymentsNotConfigured

    def payments(self, since: datetime, *, changed_since: datetime) -> AsyncIterator[PaymentState]:
        raise PaymentsNotConfigured

    def subscriptions(self) -> AsyncIterator[Subscription]:
        raise PaymentsNotConfigured

    async def offer(self, products: tuple[Product, ...]) -> None:
        raise PaymentsNotConfigured
