"""Checkout sessions and payments."""

from typing import Any

from rota.dev.stripe.billing import DAY_S, Billing
from rota.dev.stripe.store import Emit, Store
from rota.dev.stripe.wire import Object, Params, StripeError, integer, missing

MINIMUM_CENTS = 50
# Test cards: one is declined, and one is accepted now and declined at renewals.
DECLINED = "4000000000000002"
DECLINED_LATER = "4000000000000341"
CARDS = ("4242424242424242", DECLINED, DECLINED_LATER)


class CardError(Exception):
    """Why a card was not charged, for the payment page."""


class Checkout:
    def __init__(self, store: Store, billing: Billing, emit: Emit, base_url: str) -> None:
        self._store = store
        self._billing = billing
        self._emit = emit
        self._base_url = base_url

    def create(self, params: Params) -> Object:
        mode = params.get("mode")
        if mode not in ("payment", "subscription"):
            raise missing("mode") if mode is None else StripeError("Invalid mode", param="mode")
        for name in ("success_url", "line_items"):
            if not params.get(name):
                raise missing(name)
        customer = self._given_customer(params, mode)
        lines = [self._line(line, mode) for line in params["line_items"]]
        total = sum(line["cents"] * line["quantity"] for line in lines)
        if mode == "payment" and total < MINIMUM_CENTS:
            raise StripeError(
                "The Checkout Session's total amount due must add up to at least $0.50 usd",
                code="amount_too_small",
            )
        session = self._store.add(
            "checkout.session",
            mode=mode,
            status="open",
            payment_status="unpaid",
            amount_subtotal=total,
            amount_total=total,
            currency="usd",
            customer=params.get("customer"),
            customer_creation=params.get("customer_creation"),
            customer_details=_details(customer) if customer else None,
            customer_email=params.get("customer_email"),
            client_reference_id=params.get("client_reference_id"),
            expires_at=self._store.clock.now() + DAY_S,
            invoice=None,
            metadata=params.get("metadata", {}),
            payment_intent=None,
            payment_method_types=["card"],
            subscription=None,
            success_url=params["success_url"],
            cancel_url=params.get("cancel_url"),
            ui_mode="hosted",
        )
        session["url"] = f"{self._base_url}/pay/{session['id']}"
        data = params.get(f"{'payment_intent' if mode == 'payment' else mode}_data", {})
        self._store.orders[session["id"]] = {"lines": lines, "data": data}
        return session

    def _given_customer(self, params: Params, mode: str) -> Object | None:
        if customer := params.get("customer"):
            for name in ("customer_email", "customer_creation"):
                if name in params:
                    raise StripeError(f"You may only specify one of customer and {name}.")
            return self._store.get("customer", customer, "customer", 400)
        if "customer_creation" in params and mode != "payment":
            raise StripeError("`customer_creation` can only be used in `payment` mode.")
        return None

    def _line(self, line: Any, mode: str) -> Object:
        quantity = integer(line, "quantity")
        if quantity < 1:
            raise StripeError("Invalid quantity", param="line_items[0][quantity]")
        if "price" in line:
            price = self._store.get("price", line["price"], "line_items[0][price]", 400)
            if not price["active"]:
                raise StripeError("The price specified is inactive.", param="line_items[0][price]")
            if mode == "payment":
                raise StripeError("You specified `payment` mode but passed a recurring price.")
            title = self._store.get("product", price["product"])["name"]
            return {
                "title": title,
                "cents": price["unit_amount"],
                "price": price,
                "quantity": quantity,
            }
        data = line.get("price_data") or {}
        if mode == "subscription":
            raise StripeError("The simulated Stripe server sells subscriptions by price ID only.")
        if data.get("currency") != "usd":
            raise StripeError("Invalid currency", param="line_items[0][price_data][currency]")
        title = (data.get("product_data") or {}).get("name")
        if not title:
            raise missing("line_items[0][price_data][product_data][name]")
        return {"title": title, "cents": integer(data, "unit_amount"), "quantity": quantity}

    def find(self, name: str) -> Object:
        session = self._store.get("checkout.session", name)
        if session["status"] == "open" and session["expires_at"] < self._store.clock.now():
            session |= {"status": "expired", "url": None}
            self._emit("checkout.session.expired", session)
        return session

    def pay(self, session: Object, card: str) -> None:
        if session["status"] != "open":
            return
        number = "".join(card.split())
        if number not in CARDS:
            raise CardError("This is not a test card. Use 4242 4242 4242 4242.")
        if number == DECLINED:
            raise CardError("Your card was declined. Try another one.")
        customer = self._customer(session)
        if customer:
            self._store.declining[customer["id"]] = number == DECLINED_LATER
        order = self._store.orders[session["id"]]
        if session["mode"] == "payment":
            self._charge(session, order["data"].get("metadata", {}))
        else:
            self._subscribe(session, order)
        session |= {"status": "complete", "url": None, "payment_status": "paid"}
        self._emit("checkout.session.completed", session)

    def _customer(self, session: Object) -> Object | None:
        if session["customer"]:
            customer = self._store.get("customer", session["customer"])
        elif session["mode"] == "payment" and session["customer_creation"] != "always":
            return None
        else:
            customer = self._store.add(
                "customer", email=session["customer_email"], name=None, metadata={}, balance=0
            )
            session["customer"] = customer["id"]
            self._emit("customer.created", customer)
        session["customer_details"] = _details(customer)
        return customer

    def _charge(self, session: Object, metadata: Object) -> None:
        cents = session["amount_total"]
        intent = self._store.add(
            "payment_intent",
            amount=cents,
            amount_received=cents,
            currency="usd",
            customer=session["customer"],
            metadata=metadata,
            status="succeeded",
        )
        charge = self._store.add(
            "charge",
            amount=cents,
            amount_captured=cents,
            amount_refunded=0,
            captured=True,
            currency="usd",
            customer=session["customer"],
            disputed=False,
            metadata=dict(metadata),
            paid=True,
            payment_intent=intent["id"],
            refunded=False,
            status="succeeded",
        )
        intent["latest_charge"] = charge["id"]
        session["payment_intent"] = intent["id"]
        self._emit("charge.succeeded", charge)
        self._emit("payment_intent.succeeded", intent)

    def _subscribe(self, session: Object, order: Object) -> None:
        data = order["data"]
        subscription = self._billing.subscribe(
            session["customer"],
            order["lines"],
            data.get("metadata", {}),
            integer(data, "trial_period_days", 0),
        )
        if subscription["status"] == "trialing":
            session["amount_total"] = 0
        session["subscription"] = subscription["id"]
        session["invoice"] = subscription["latest_invoice"]


def _details(customer: Object) -> Object:
    return {"email": customer["email"], "name": customer["name"]}
