"""Subscriptions over time: trials, renewals, failed payments and cancellation."""

import calendar
from datetime import UTC, datetime

from rota.dev.stripe.store import Emit, Store
from rota.dev.stripe.wire import Object, Params, StripeError, boolean, integer, merged

DAY_S = 86_400
# A failed payment is retried after this many days. Then the subscription ends.
RETRY_DAYS = (1, 3, 5, 7)
GIVE_UP_DAYS = 21
# The invoice of a renewal is a draft for this long. Then the customer is charged.
DRAFT_S = 3_600
LIVE = ("trialing", "active", "past_due")


def period_end(anchor: int, start: int) -> int:
    """One calendar month later, on the anchor's day: 31 January, 28 February, 31 March."""
    first, begun = (datetime.fromtimestamp(moment, UTC) for moment in (anchor, start))
    year, month = divmod(begun.year * 12 + begun.month, 12)
    day = min(first.day, calendar.monthrange(year, month + 1)[1])
    return int(first.replace(year=year, month=month + 1, day=day).timestamp())


class Billing:
    def __init__(self, store: Store, emit: Emit) -> None:
        self._store = store
        self._emit = emit

    def subscribe(
        self, customer: str, lines: list[Object], metadata: Object, trial_days: int
    ) -> Object:
        """Creates a subscription whose first payment succeeded."""
        now = self._store.clock.now()
        trial_end = now + trial_days * DAY_S if trial_days else None
        anchor = trial_end or now
        subscription = self._store.add(
            "subscription",
            customer=customer,
            status="trialing" if trial_end else "active",
            billing_cycle_anchor=anchor,
            start_date=now,
            cancel_at=None,
            cancel_at_period_end=False,
            canceled_at=None,
            collection_method="charge_automatically",
            currency="usd",
            ended_at=None,
            latest_invoice=None,
            metadata=metadata,
            billing_mode={"type": "classic", "flexible": None},
            trial_start=now if trial_end else None,
            trial_end=trial_end,
        )
        items = [
            self._store.add(
                "subscription_item",
                subscription=subscription["id"],
                price=line["price"],
                quantity=line["quantity"],
                current_period_start=now,
                current_period_end=trial_end or period_end(anchor, now),
                metadata={},
            )
            for line in lines
        ]
        subscription["items"] = {
            "object": "list",
            "data": items,
            "has_more": False,
            "url": f"/v1/subscription_items?subscription={subscription['id']}",
        }
        self._emit("customer.subscription.created", subscription)
        invoice = self._invoice(subscription, "subscription_create", free=bool(trial_end))
        self._finalize(invoice)
        self._paid(invoice)
        return subscription

    def update(self, subscription: Object, params: Params) -> Object:
        if subscription["status"] == "canceled":
            raise StripeError(
                "A canceled subscription can only update its cancellation_details and metadata."
            )
        if params.get("proration_behavior", "none") != "none" and "items" in params:
            raise StripeError(
                "The simulated Stripe server changes items only with proration_behavior none."
            )
        for change in params.get("items", []):
            self._change_item(subscription, change)
        subscription["metadata"] = merged(subscription["metadata"], params.get("metadata"))
        if "cancel_at_period_end" in params:
            ends = boolean(params, "cancel_at_period_end")
            subscription["cancel_at_period_end"] = ends
            subscription["cancel_at"] = _period(subscription)[1] if ends else None
            subscription["canceled_at"] = self._store.clock.now() if ends else None
        self._emit("customer.subscription.updated", subscription)
        return subscription

    def _change_item(self, subscription: Object, change: Object) -> None:
        items = {item["id"]: item for item in subscription["items"]["data"]}
        if change.get("id") not in items:
            raise StripeError("No such subscription item", code="resource_missing", param="items")
        item = items[change["id"]]
        if "price" in change:
            price = self._store.get("price", change["price"], "items[0][price]", 400)
            item["price"] = price
        item["quantity"] = integer(change, "quantity", item["quantity"])

    def cancel(self, subscription: Object, *, prorate: bool) -> Object:
        if subscription["status"] == "canceled":
            name = subscription["id"]
            raise StripeError(
                f"No such subscription: '{name}'", status=404, code="resource_missing", param="id"
            )
        if prorate and subscription["status"] == "active":
            self._credit_unused(subscription)
        self._end(subscription)
        return subscription

    def write_off(self, subscription: Object) -> Object:
        """The last invoice will not be paid. The subscription goes on as if it were."""
        invoice = self._latest_invoice(subscription)
        invoice |= {"status": "uncollectible", "next_payment_attempt": None}
        subscription["status"] = "active"
        self._emit("customer.subscription.updated", subscription)
        return invoice

    def void(self, invoice: Object) -> Object:
        if invoice["status"] != "open":
            raise StripeError("You can only pass in open invoices. This invoice isn't open.")
        if invoice["id"] in self._store.processing:
            raise StripeError("You cannot void an invoice that has a processing payment.")
        invoice |= {"status": "void", "next_payment_attempt": None}
        customer = self._store.get("customer", invoice["customer"])
        customer["balance"] -= invoice["total"] - invoice["amount_due"]
        for subscription in self._store.all("subscription"):
            is_last = subscription["latest_invoice"] == invoice["id"]
            if is_last and subscription["status"] == "past_due":
                # Nothing is owed any more.
                subscription["status"] = "active"
                self._emit("customer.subscription.updated", subscription)
        return invoice

    def update_invoice(self, invoice: Object, params: Params) -> Object:
        if invoice["status"] not in ("draft", "open"):
            raise StripeError("Finalized invoices can't be updated in this way.")
        invoice["auto_advance"] = boolean(params, "auto_advance")
        return invoice

    def settle(self, subscription: Object) -> Object:
        """The first bank debit that is processed for the subscription succeeds."""
        names = (invoice["id"] for invoice in self.invoices(subscription["id"]))
        name = next(name for name in names if name in self._store.processing)
        del self._store.processing[name]
        invoice = self._store.get("invoice", name)
        self._paid(invoice)
        return invoice

    def invoices(self, subscription: str) -> list[Object]:
        """All invoices of a subscription, oldest first."""
        return [
            invoice
            for invoice in self._store.tables["invoice"].values()
            if invoice["parent"]["subscription_details"]["subscription"] == subscription
        ]

    def _credit_unused(self, subscription: Object) -> None:
        """Adds the unused part of the period to the customer's credit for later invoices."""
        start, end = _period(subscription)
        left = max(end - self._store.clock.now(), 0)
        customer = self._store.get("customer", subscription["customer"])
        customer["balance"] -= _price_of(subscription) * left // (end - start)

    def run_until(self, moment: int) -> None:
        """Processes everything that is due by then, in order of time."""
        clock = self._store.clock
        try:
            while due := min(map(self._due, self._pending()), key=lambda d: d[0], default=None):
                if due[0] > moment:
                    break
                clock.at = due[0]
                self._process(due[1])
        finally:
            clock.at = None

    def _pending(self) -> list[Object]:
        """Live subscriptions, and those that ended while an invoice was a draft: Stripe finalizes
        and collects that as well."""
        return [
            subscription
            for subscription in self._store.tables["subscription"].values()
            if subscription["status"] in LIVE or _advances(self._latest_invoice(subscription))
        ]

    def _due(self, subscription: Object) -> tuple[int, Object]:
        invoice = self._latest_invoice(subscription)
        if _advances(invoice):
            return invoice["created"] + DRAFT_S, subscription
        if invoice["status"] == "open" and invoice["id"] not in self._store.processing:
            give_up_at = invoice["created"] + GIVE_UP_DAYS * DAY_S
            return invoice["next_payment_attempt"] or give_up_at, subscription
        return _period(subscription)[1], subscription

    def _process(self, subscription: Object) -> None:
        self._store.dirty = True
        invoice = self._latest_invoice(subscription)
        if _advances(invoice):
            self._finalize(invoice)
            self._attempt(subscription, invoice)
        elif invoice["status"] == "open" and invoice["id"] not in self._store.processing:
            if invoice["next_payment_attempt"]:
                self._attempt(subscription, invoice)
            else:
                self._end(subscription)
        elif subscription["cancel_at_period_end"]:
            self._end(subscription)
        else:
            self._renew(subscription)

    def _renew(self, subscription: Object) -> None:
        _, start = _period(subscription)
        for item in subscription["items"]["data"]:
            item["current_period_start"] = start
            item["current_period_end"] = period_end(subscription["billing_cycle_anchor"], start)
        self._invoice(subscription, "subscription_cycle")
        subscription["status"] = "active"
        self._emit("customer.subscription.updated", subscription)

    def _attempt(self, subscription: Object, invoice: Object) -> None:
        """Charges the customer, or schedules the next attempt."""
        declined = bool(invoice["amount_due"]) and self._store.declining.get(invoice["customer"])
        before = status = subscription["status"]
        if self._store.debiting.get(invoice["customer"]):
            # The bank takes days.
            self._store.processing[invoice["id"]] = True
            invoice |= {"attempted": True, "attempt_count": 1}
        elif declined:
            attempts = invoice["attempt_count"]
            invoice["attempt_count"] = attempts + 1
            invoice["attempted"] = True
            invoice["next_payment_attempt"] = (
                invoice["created"] + RETRY_DAYS[attempts] * DAY_S
                if attempts < len(RETRY_DAYS)
                else None
            )
            status = "past_due"
            self._emit("invoice.payment_failed", invoice)
        else:
            status = "active"
            self._paid(invoice)
        if before in LIVE and status != before:
            subscription["status"] = status
            self._emit("customer.subscription.updated", subscription)

    def _paid(self, invoice: Object) -> None:
        due = invoice["amount_due"]
        invoice |= {"status": "paid", "amount_paid": due, "amount_remaining": 0}
        invoice |= {"attempted": True, "attempt_count": invoice["attempt_count"] + 1}
        invoice["next_payment_attempt"] = None
        invoice["status_transitions"]["paid_at"] = self._store.clock.now()
        self._emit("invoice.paid", invoice)

    def _end(self, subscription: Object) -> None:
        now = self._store.clock.now()
        subscription |= {"status": "canceled", "ended_at": now}
        subscription["canceled_at"] = subscription["canceled_at"] or now
        self._emit("customer.subscription.deleted", subscription)

    def _invoice(self, subscription: Object, reason: str, *, free: bool = False) -> Object:
        """A draft for the current period."""
        total = 0 if free else _price_of(subscription)
        start, end = _period(subscription)
        invoice = self._store.add(
            "invoice",
            customer=subscription["customer"],
            status="draft",
            auto_advance=True,
            billing_reason=reason,
            currency="usd",
            subtotal=total,
            total=total,
            starting_balance=0,
            amount_due=total,
            amount_paid=0,
            amount_remaining=total,
            attempt_count=0,
            attempted=False,
            next_payment_attempt=None,
            status_transitions={"paid_at": None},
            period_start=start,
            period_end=end,
            lines=_lines(subscription),
            metadata={},
            parent={
                "type": "subscription_details",
                "quote_details": None,
                "subscription_details": {
                    "metadata": dict(subscription["metadata"]),
                    "subscription": subscription["id"],
                },
            },
        )
        subscription["latest_invoice"] = invoice["id"]
        return invoice

    def _finalize(self, invoice: Object) -> None:
        """Takes what it can from the customer's credit. The rest is due."""
        customer = self._store.get("customer", invoice["customer"])
        balance = customer["balance"]
        credit = min(invoice["total"], max(-balance, 0))
        due = invoice["total"] - credit
        invoice |= {"status": "open", "starting_balance": balance}
        invoice |= {"amount_due": due, "amount_remaining": due}
        customer["balance"] += credit

    def _latest_invoice(self, subscription: Object) -> Object:
        return self._store.tables["invoice"][subscription["latest_invoice"]]


def _advances(invoice: Object) -> bool:
    return bool(invoice["status"] == "draft" and invoice["auto_advance"])


def _period(subscription: Object) -> tuple[int, int]:
    item = subscription["items"]["data"][0]
    return item["current_period_start"], item["current_period_end"]


def _lines(subscription: Object) -> Object:
    """What an invoice bills: the items as they are now."""
    lines = [
        {
            "object": "line_item",
            "quantity": item["quantity"],
            "parent": {
                "type": "subscription_item_details",
                "invoice_item_details": None,
                "subscription_item_details": {
                    "invoice_item": None,
                    "proration": False,
                    "subscription": item["subscription"],
                    "subscription_item": item["id"],
                },
            },
            "pricing": {
                "type": "price_details",
                "price_details": {
                    "price": item["price"]["id"],
                    "product": item["price"]["product"],
                },
                "unit_amount_decimal": item["price"]["unit_amount_decimal"],
            },
        }
        for item in subscription["items"]["data"]
    ]
    return {"object": "list", "data": lines, "has_more": False, "url": "/v1/invoices"}


def _price_of(subscription: Object) -> int:
    items = subscription["items"]["data"]
    return sum(item["price"]["unit_amount"] * item["quantity"] for item in items)
