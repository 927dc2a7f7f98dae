"""The endpoints of Stripe's API that the service uses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rota.dev.stripe.billing import Billing
from rota.dev.stripe.checkout import Checkout
from rota.dev.stripe.reversals import Reversals
from rota.dev.stripe.store import Emit, Store
from rota.dev.stripe.wire import (
    Object,
    Params,
    StripeError,
    boolean,
    integer,
    listed,
    merged,
    missing,
    since,
)

PAGE = ("limit", "starting_after")


@dataclass(frozen=True)
class Endpoint:
    method: str
    path: str
    # Takes the parameters and the ID in the path, or an empty ID.
    act: Callable[[Params, str], Object]
    accepts: Sequence[str]


class Api:
    def __init__(
        self,
        store: Store,
        billing: Billing,
        checkout: Checkout,
        reversals: Reversals,
        emit: Emit,
    ) -> None:
        self._store = store
        self._billing = billing
        self._reversals = reversals
        self._emit = emit
        self._checkout = checkout
        sessions = "/v1/checkout/sessions"
        customer = ("email", "name", "metadata")
        self.endpoints = [
            Endpoint("POST", sessions, lambda p, _: checkout.create(p), SESSION),
            Endpoint("GET", sessions, self.sessions, ("customer", "status", *PAGE)),
            Endpoint("GET", f"{sessions}/{{id}}", lambda _, i: checkout.find(i), ()),
            Endpoint("POST", "/v1/customers", self.create_customer, customer),
            Endpoint("GET", "/v1/customers", self.customers, ("email", *PAGE)),
            Endpoint("GET", "/v1/customers/{id}", self._get("customer"), ()),
            Endpoint("POST", "/v1/customers/{id}", self.update_customer, customer),
            Endpoint("POST", "/v1/products", self.create_product, ("id", "name", "metadata")),
            Endpoint("GET", "/v1/products/{id}", self._get("product"), ()),
            Endpoint("POST", "/v1/products/{id}", self.update_product, ("name", "metadata")),
            Endpoint("POST", "/v1/prices", self.create_price, PRICE),
            Endpoint("GET", "/v1/prices", self.prices, ("lookup_keys", "active", *PAGE)),
            Endpoint("GET", "/v1/subscriptions", self.subscriptions, SUBSCRIPTIONS),
            Endpoint("GET", "/v1/subscriptions/{id}", self._get("subscription"), ()),
            Endpoint("POST", "/v1/subscriptions/{id}", self.update_subscription, SUBSCRIPTION),
            Endpoint("DELETE", "/v1/subscriptions/{id}", self.cancel_subscription, CANCELLATION),
            Endpoint("GET", "/v1/invoices", self.invoices, ("subscription", "status", *PAGE)),
            Endpoint("POST", "/v1/invoices/{id}", self.update_invoice, ("auto_advance",)),
            Endpoint("POST", "/v1/invoices/{id}/void", self.void_invoice, ()),
            Endpoint("GET", "/v1/payment_intents", self.intents, ("created", "customer", *PAGE)),
            Endpoint("GET", "/v1/payment_intents/{id}", self._get("payment_intent"), ()),
            Endpoint("POST", "/v1/refunds", lambda p, _: reversals.refund(p), REFUND),
            Endpoint("GET", "/v1/refunds", self.refunds, REVERSALS),
            Endpoint("GET", "/v1/refunds/{id}", self._get("refund"), ()),
            Endpoint("GET", "/v1/disputes", self.disputes, REVERSALS),
            Endpoint("GET", "/v1/disputes/{id}", self._get("dispute"), ()),
        ]

    def _get(self, kind: str) -> Callable[[Params, str], Object]:
        return lambda _, name: self._store.get(kind, name)

    def sessions(self, params: Params, _: str) -> Object:
        found = [
            session
            for session in self._store.all("checkout.session")
            if params.get("customer") in (None, session["customer"])
            and params.get("status") in (None, session["status"])
        ]
        return listed(found, params, "/v1/checkout/sessions")

    def create_customer(self, params: Params, _: str) -> Object:
        customer = self._store.add(
            "customer",
            email=params.get("email"),
            name=params.get("name"),
            metadata=merged({}, params.get("metadata")),
            balance=0,
        )
        self._emit("customer.created", customer)
        return customer

    def update_customer(self, params: Params, name: str) -> Object:
        customer = self._store.get("customer", name)
        customer |= {field: params[field] for field in ("email", "name") if field in params}
        customer["metadata"] = merged(customer["metadata"], params.get("metadata"))
        return customer

    def customers(self, params: Params, _: str) -> Object:
        email = params.get("email")
        found = [c for c in self._store.all("customer") if email in (None, c["email"])]
        return listed(found, params, "/v1/customers")

    def create_product(self, params: Params, _: str) -> Object:
        if not params.get("name"):
            raise missing("name")
        fields = {"id": params["id"]} if "id" in params else {}
        if params.get("id") in self._store.tables["product"]:
            raise StripeError("Product already exists.", code="resource_already_exists", param="id")
        metadata = merged({}, params.get("metadata"))
        return self._store.add(
            "product", **fields, active=True, name=params["name"], metadata=metadata
        )

    def update_product(self, params: Params, name: str) -> Object:
        product = self._store.get("product", name)
        product["name"] = params.get("name", product["name"])
        product["metadata"] = merged(product["metadata"], params.get("metadata"))
        return product

    def create_price(self, params: Params, _: str) -> Object:
        if params.get("currency") != "usd":
            raise StripeError("Invalid currency", param="currency")
        interval = (params.get("recurring") or {}).get("interval")
        if interval != "month":
            raise StripeError(
                "The simulated Stripe server supports the interval month only.",
                param="recurring[interval]",
            )
        product = self._store.get("product", params.get("product", ""), "product", 400)
        cents = integer(params, "unit_amount")
        key = params.get("lookup_key")
        holder = next((p for p in self._store.all("price") if key and p["lookup_key"] == key), None)
        if holder and not boolean(params, "transfer_lookup_key"):
            raise StripeError(
                f"A price (`{holder['id']}`) already uses that lookup key.", param="lookup_key"
            )
        if holder:
            holder["lookup_key"] = None
        return self._store.add(
            "price",
            active=True,
            billing_scheme="per_unit",
            currency="usd",
            lookup_key=key,
            metadata=merged({}, params.get("metadata")),
            product=product["id"],
            recurring={"interval": "month", "interval_count": 1, "usage_type": "licensed"},
            type="recurring",
            unit_amount=cents,
            unit_amount_decimal=str(cents),
        )

    def prices(self, params: Params, _: str) -> Object:
        keys = params.get("lookup_keys")
        found = [p for p in self._store.all("price") if keys is None or p["lookup_key"] in keys]
        if "active" in params:
            found = [p for p in found if p["active"] is boolean(params, "active")]
        return listed(found, params, "/v1/prices")

    def subscriptions(self, params: Params, _: str) -> Object:
        status = params.get("status")
        found = [
            s
            for s in self._store.all("subscription")
            if params.get("customer") in (None, s["customer"])
            and (status in ("all", s["status"]) or (not status and s["status"] != "canceled"))
        ]
        return listed(found, params, "/v1/subscriptions")

    def update_subscription(self, params: Params, name: str) -> Object:
        return self._billing.update(self._store.get("subscription", name), params)

    def cancel_subscription(self, params: Params, name: str) -> Object:
        subscription = self._store.get("subscription", name)
        # Without invoice_now, Stripe would only record the proration for the next invoice.
        prorate = boolean(params, "prorate") and boolean(params, "invoice_now")
        return self._billing.cancel(subscription, prorate=prorate)

    def invoices(self, params: Params, _: str) -> Object:
        found = [
            invoice
            for invoice in reversed(self._billing.invoices(params.get("subscription", "")))
            if params.get("status") in (None, invoice["status"])
        ]
        return listed(found, params, "/v1/invoices")

    def update_invoice(self, params: Params, name: str) -> Object:
        return self._billing.update_invoice(self._store.get("invoice", name), params)

    def void_invoice(self, _: Params, name: str) -> Object:
        return self._billing.void(self._store.get("invoice", name))

    def intents(self, params: Params, _: str) -> Object:
        customer = params.get("customer")
        found = [
            intent
            for intent in self._store.all("payment_intent")
            if intent["created"] >= since(params) and customer in (None, intent["customer"])
        ]
        return listed(found, params, "/v1/payment_intents")

    def refunds(self, params: Params, _: str) -> Object:
        return listed(self._reversals.refunds(params), params, "/v1/refunds")

    def disputes(self, params: Params, _: str) -> Object:
        return listed(self._reversals.disputes(params), params, "/v1/disputes")


SESSION = (
    "mode",
    "line_items",
    "success_url",
    "cancel_url",
    "customer",
    "customer_email",
    "customer_creation",
    "metadata",
    "payment_intent_data",
    "subscription_data",
    "client_reference_id",
)
PRICE = (
    "currency",
    "product",
    "unit_amount",
    "recurring",
    "lookup_key",
    "transfer_lookup_key",
    "metadata",
)
SUBSCRIPTIONS = ("status", "customer", *PAGE)
SUBSCRIPTION = ("items", "metadata", "cancel_at_period_end", "proration_behavior")
CANCELLATION = ("prorate", "invoice_now")
REVERSALS = ("payment_intent", "charge", "created", *PAGE)
REFUND = ("payment_intent", "charge", "amount", "reason", "metadata")
