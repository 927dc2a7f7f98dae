"""Stripe as the payment processor: hosted checkout, subscriptions and webhooks.

Prices at Stripe have lookup keys (`rota_<product>`). Every object that Rota creates for an account
has the account's ID in its metadata, and the name of the cell if the deployment has one. Objects
without the account belong to another service, and those with another name to another cell.
"""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final
from uuid import UUID

import stripe
import structlog
from stripe.params import CustomerCreateParams
from stripe.params.checkout import SessionCreateParams

from rota.payments import stripe_payments, stripe_webhook
from rota.payments.port import (
    Checkout,
    CustomerUnknown,
    Payer,
    PaymentFailed,
    PaymentState,
    Product,
    Subscription,
    SubscriptionUnknown,
    WebhookEvent,
)
from rota.payments.stripe_errors import (
    CheckoutClosed,
    ProductNotOnSale,
    SubscriptionForeign,
    stripe_call,
)
from rota.payments.stripe_subscriptions import (
    is_paid,
    kept_price,
    lookup_key,
    paid_item,
    subscription_of,
    was_paid_late,
)
from rota.payments.stripe_webhook import TOP_UP, names_of

TIMEOUT_S = 10.0
RETRIES = 2
PRICE_CACHE_S = 300.0
PAGE_SIZE = 100
# Says whether the period is paid.
EXPANDED: Final = ["latest_invoice"]

log = structlog.get_logger()


class Stripe:
    """`return_url` is where the hosted page sends people back to.

    Each of the `webhook_secrets` is accepted, so that a secret can be rotated.
    """

    def __init__(
        self,
        key: str,
        *,
        return_url: str,
        webhook_secrets: Sequence[str] = (),
        api_url: str | None = None,
        timeout_s: float = TIMEOUT_S,
        cell: str | None = None,
        owns_nameless: bool = True,
    ) -> None:
        self._cell = cell
        self._own = names_of(cell, owns_nameless=owns_nameless)
        self._http = stripe.HTTPXClient(timeout=timeout_s)
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": api_url} if api_url else None,
            max_network_retries=RETRIES,
            http_client=self._http,
        )
        self._v1 = self._client.v1
        self._webhook_secrets = tuple(webhook_secrets)
        separator = "&" if "?" in return_url else "?"
        self._success_url = (
            f"{return_url}{separator}checkout=done&session_id={{CHECKOUT_SESSION_ID}}"
        )
        self._cancel_url = f"{return_url}{separator}checkout=cancelled"
        # The ID of each product's price, and when the cached value expires.
        self._prices: dict[str, tuple[str, float]] = {}

    async def close(self) -> None:
        await self._http.close_async()  # type: ignore[no-untyped-call]

    def _metadata(self, account_id: UUID, **more: str) -> dict[str, str]:
        return {"account": str(account_id), **more, **self._cell_metadata}

    @property
    def _cell_metadata(self) -> dict[str, str]:
        return {} if self._cell is None else {"cell": self._cell}

    async def create_customer(self, account_id: UUID, email: str | None, key: str) -> str:
        params: CustomerCreateParams = {"metadata": self._metadata(account_id)}
        if email:
            params["email"] = email
        with stripe_call("customer"):
            created = await self._v1.customers.create_async(params, {"idempotency_key": key})
        return created.id

    async def top_up_checkout(self, payer: Payer, amount_cents: int, key: str) -> Checkout:
        metadata = self._metadata(payer.account_id, kind=TOP_UP)
        params: SessionCreateParams = {
            "mode": "payment",
            "line_items": [
                {
                    "quantity": 1,
                    "price_data": {
                        "currency": "usd",
                        "unit_amount": amount_cents,
                        "product_data": {"name": "Rota credits"},
                    },
                }
            ],
            "metadata": metadata,
            # Identifies the account of refunds and disputes.
            "payment_intent_data": {"metadata": metadata},
        }
        return await self._checkout(payer, params, key)

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
        metadata = self._metadata(payer.account_id, product=product)
        if replaces:
            metadata["replaces"] = replaces
        params: SessionCreateParams = {
            "mode": "subscription",
            "line_items": [{"price": await self._price(product), "quantity": seats}],
            "metadata": metadata,
            "subscription_data": {"metadata": metadata},
        }
        if trial_days:
            params["subscription_data"]["trial_period_days"] = trial_days
        return await self._checkout(payer, params, key)

    async def _checkout(self, payer: Payer, params: SessionCreateParams, key: str) -> Checkout:
        params["success_url"] = self._success_url
        params["cancel_url"] = self._cancel_url
        params["customer"] = payer.customer_id
        with stripe_call("checkout"):
            try:
                session = await self._v1.checkout.sessions.create_async(
                    params, {"idempotency_key": key}
                )
            except stripe.InvalidRequestError as error:
                if (error.code, error.param) != ("resource_missing", "customer"):
                    raise
                log.error("customer_unknown", customer_id=payer.customer_id)
                raise CustomerUnknown(payer.customer_id) from error
        if not session.url:
            raise CheckoutClosed
        return Checkout(session.id, session.url)

    async def subscription(self, subscription_id: str) -> Subscription:
        with stripe_call("subscription"):
            found = await self._retrieve(subscription_id)
        own = self._own_subscription(found)
        if found.ended_at:
            await self._log_late_payments(found)
        return own

    async def _log_late_payments(self, found: stripe.Subscription) -> None:
        """Nothing is given for a payment after the end. Somebody has to refund it."""
        try:
            with stripe_call("paid_invoices"):
                async for invoice in self._invoices(found.id, "paid"):
                    if was_paid_late(invoice, found):
                        log.error("ended_subscription_paid", id=found.id, invoice=invoice.id)
        except PaymentFailed:
            # The end of the subscription applies in any case. Somebody has to look at its invoices.
            log.error("ended_subscription_unchecked", id=found.id)

    async def _invoices(self, subscription_id: str, status: str) -> AsyncIterator[stripe.Invoice]:
        found = await self._v1.invoices.list_async(
            {"subscription": subscription_id, "status": status, "limit": PAGE_SIZE}
        )
        async for invoice in found.auto_paging_iter():
            yield invoice

    async def _retrieve(self, subscription_id: str) -> stripe.Subscription:
        try:
            return await self._v1.subscriptions.retrieve_async(
                subscription_id, {"expand": EXPANDED}
            )
        except stripe.InvalidRequestError as error:
            if error.code != "resource_missing":
                raise
            log.error("subscription_unknown", subscription_id=subscription_id)
            raise SubscriptionUnknown(subscription_id) from error

    async def change(self, subscription_id: str, product: str, seats: int) -> Subscription:
        with stripe_call("subscription"):
            found = await self._retrieve(subscription_id)
        self._own_subscription(found)
        price = kept_price(found, product) or await self._price(product)
        with stripe_call("change"):
            # Without an idempotency key: its old response would not say what is true now.
            changed = await self._v1.subscriptions.update_async(
                subscription_id,
                {
                    "items": [{"id": found.items.data[0].id, "price": price, "quantity": seats}],
                    "proration_behavior": "none",
                    "metadata": {"product": product, **self._cell_metadata},
                    "expand": EXPANDED,
                },
            )
        return self._own_subscription(changed)

    async def cancel(self, subscription_id: str, *, at_period_end: bool) -> Subscription:
        with stripe_call("cancel"):
            changed = await self._v1.subscriptions.update_async(
                subscription_id, {"cancel_at_period_end": at_period_end, "expand": EXPANDED}
            )
        return self._own_subscription(changed)

    async def end(self, subscription_id: str) -> None:
        with stripe_call("end"):
            try:
                found = await self._retrieve(subscription_id)
            except SubscriptionUnknown:
                # Another account at Stripe had it. This one cannot renew it.
                return
            if found.status not in ("canceled", "incomplete_expired"):
                await self._cancel_now(found)
            # Afterwards, because a past-due subscription is active again without an open invoice.
            await self._stop_invoices(subscription_id)

    async def _cancel_now(self, found: stripe.Subscription) -> None:
        # With proration, Stripe also credits invoices that were never paid.
        paid = found.status == "active" and is_paid(found)
        if paid and (item := paid_item(found)) is not None:
            try:
                await self._v1.subscriptions.update_async(
                    found.id, {"items": [item], "proration_behavior": "none"}
                )
            except stripe.InvalidRequestError:
                # It must end in any case. Somebody has to credit the rest.
                log.exception("subscription_ended_without_credit", id=found.id)
                paid = False
        try:
            ended = await self._v1.subscriptions.cancel_async(
                found.id, {"prorate": paid, "invoice_now": paid, "expand": EXPANDED}
            )
        except stripe.InvalidRequestError as error:
            # A concurrent call has ended it.
            if error.code != "resource_missing":
                raise
            return
        if is_paid(ended) and not is_paid(found):
            # The payment succeeded just before the end.
            log.error("subscription_ended_without_credit", id=found.id)

    async def _stop_invoices(self, subscription_id: str) -> None:
        """Otherwise, they could still be paid after the subscription has ended."""
        # Drafts first: one that Stripe finalizes meanwhile is then among the open ones.
        async for draft in self._invoices(subscription_id, "draft"):
            # Stripe can neither delete nor void it. One that credits the rest must go on.
            if draft.total > 0:
                with _log_unstopped(subscription_id, draft):
                    await self._v1.invoices.update_async(draft.id, {"auto_advance": False})
        async for invoice in self._invoices(subscription_id, "open"):
            with _log_unstopped(subscription_id, invoice):
                await self._v1.invoices.void_invoice_async(invoice.id)

    def read_webhook(self, body: bytes, signature: str) -> WebhookEvent | None:
        return stripe_webhook.read(body, signature, self._webhook_secrets, self._own)

    async def payment(self, payment_id: str) -> PaymentState | None:
        with stripe_call("payment"):
            return await stripe_payments.find(self._client, payment_id, self._own)

    async def payments(
        self, since: datetime, *, changed_since: datetime
    ) -> AsyncIterator[PaymentState]:
        with stripe_call("payments"):
            async for state in stripe_payments.paid_or_changed(
                self._client, since, changed_since, self._own
            ):
                yield state

    async def subscriptions(self) -> AsyncIterator[Subscription]:
        with stripe_call("subscriptions"):
            # Stripe does not list cancelled ones.
            found = await self._v1.subscriptions.list_async(
                {"limit": PAGE_SIZE, "expand": [f"data.{each}" for each in EXPANDED]}
            )
            async for subscription in found.auto_paging_iter():
                mapped = subscription_of(subscription, self._own)
                if mapped and mapped.status != "ended":
                    yield mapped

    def _own_subscription(self, found: stripe.Subscription) -> Subscription:
        mapped = subscription_of(found, self._own)
        if mapped is None:
            log.error("stripe_subscription_foreign", subscription_id=found.id)
            raise SubscriptionForeign(found.id)
        return mapped

    async def offer(self, products: tuple[Product, ...]) -> None:
        with stripe_call("offer"):
            for product in products:
                await self._offer(product)

    async def _offer(self, product: Product) -> None:
        name = lookup_key(product.name)
        await self._put_product(name, product.title)
        price = await self._find_price(name)
        if price and (price.unit_amount, price.currency) == (product.price_cents, "usd"):
            return
        # The old price is part of the key, because a price can change and change back in a day.
        key = f"{name}:{product.price_cents}:{price.id if price else ''}"
        await self._v1.prices.create_async(
            {
                "product": name,
                "currency": "usd",
                "unit_amount": product.price_cents,
                "recurring": {"interval": "month"},
                "lookup_key": name,
                "transfer_lookup_key": True,
                # Stays when the lookup key moves to another price.
                "metadata": {"product": product.name},
            },
            {"idempotency_key": key},
        )
        self._prices.pop(product.name, None)

    async def _put_product(self, name: str, title: str) -> None:
        """Creates the product, or updates its title."""
        try:
            found = await self._v1.products.retrieve_async(name)
        except stripe.InvalidRequestError as error:
            if error.code != "resource_missing":
                raise
        else:
            if found.name != title:
                await self._v1.products.update_async(name, {"name": title})
            return
        try:
            await self._v1.products.create_async({"id": name, "name": title})
        except stripe.InvalidRequestError as error:
            # Another process has just created it.
            if error.code != "resource_already_exists":
                raise

    async def _price(self, product: str) -> str:
        price, until = self._prices.get(product, ("", 0.0))
        if time.monotonic() < until:
            return price
        with stripe_call("price"):
            found = await self._find_price(lookup_key(product))
        if found is None:
            log.error("stripe_price_missing", product=product)
            raise ProductNotOnSale(product)
        self._prices[product] = found.id, time.monotonic() + PRICE_CACHE_S
        return found.id

    async def _find_price(self, lookup_key: str) -> stripe.Price | None:
        found = await self._v1.prices.list_async({"lookup_keys": [lookup_key], "active": True})
        return next(iter(found.data), None)


@contextmanager
def _log_unstopped(subscription_id: str, invoice: stripe.Invoice) -> Iterator[None]:
    """A bank processes the payment, it has just been made, or the key cannot write invoices. The
    subscription must end in any case. Somebody has to look at the payment."""
    try:
        yield
    except (stripe.InvalidRequestError, stripe.PermissionError):
        log.exception(
            "subscription_ended_with_open_invoice", id=subscription_id, invoice=invoice.id
        )
