"""Webhooks: only signed events are accepted, and only this service's objects count."""

import json
import time
from copy import deepcopy
from typing import Any
from uuid import UUID, uuid4

import pytest

from rota.dev.stripe.webhooks import signature
from rota.payments.port import (
    BadSignature,
    Payer,
    Payment,
    PaymentChanged,
    SubscriptionChanged,
    WebhookEvent,
)
from rota.payments.stripe import Stripe
from tests.payments.conftest import RETURN_URL
from tests.payments.stripe_server import KEY, SECRET, StripeServer

ACCOUNT = UUID("0197a000-0000-7000-8000-000000000001")
OURS = {"account": str(ACCOUNT), "kind": "topup"}


@pytest.fixture(scope="module")
def reader() -> Stripe:
    return Stripe(KEY, return_url=RETURN_URL, webhook_secrets=(SECRET, "whsec_next"))


def event(kind: str, data: Any) -> dict[str, Any]:
    return {"id": "evt_1", "object": "event", "type": kind, "data": {"object": data}}


def session(**changes: Any) -> dict[str, Any]:
    return {
        "id": "cs_test_1",
        "object": "checkout.session",
        "mode": "payment",
        "payment_status": "paid",
        "amount_total": 1_250,
        "payment_intent": "pi_1",
        "customer": "cus_1",
        "metadata": OURS,
    } | changes


PAID = event("checkout.session.completed", session())
PAYMENT = Payment("pi_1", ACCOUNT, "cus_1", 1_250)
BODY = json.dumps(PAID).encode()


def test_a_signed_event_is_read(reader: Stripe) -> None:
    assert reader.read_webhook(BODY, signature(BODY, SECRET)) == PAYMENT


def test_every_configured_secret_and_one_of_several_signatures_is_accepted(
    reader: Stripe,
) -> None:
    assert reader.read_webhook(BODY, signature(BODY, "whsec_next"))
    both = signature(BODY, "whsec_old") + ",v1=" + signature(BODY, SECRET).partition("v1=")[2]
    assert reader.read_webhook(BODY, both)
    with pytest.raises(BadSignature):
        reader.read_webhook(BODY, signature(BODY, "whsec_old"))


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace(b"1250", b"9250"),
        BODY.replace(b": ", b":"),
        json.dumps(PAID, indent=2).encode(),
        BODY + b"\n",
        b" " + BODY,
        b"",
        BODY.replace(b"evt_1", b"evt_2"),
        b"\xff" + BODY,
    ],
    ids=["altered", "respaced", "indented", "after", "before", "empty", "renamed", "not text"],
)
def test_a_body_that_differs_from_the_signed_one_is_refused(reader: Stripe, body: bytes) -> None:
    with pytest.raises(BadSignature) as refused:
        reader.read_webhook(body, signature(BODY, SECRET))
    assert refused.value.status_code == 400


@pytest.mark.parametrize(
    "header",
    [
        "",
        "junk",
        "t=,v1=",
        "t=1",
        f"t={int(time.time())}",
        f"t={int(time.time())},v1=",
        f"t={int(time.time())},v1=" + "0" * 64,
        f"t={int(time.time())},v1=\xe9\xe9",
        "v1=" + signature(BODY, SECRET).partition("v1=")[2],
        signature(BODY, SECRET).replace("v1=", "v0="),
        signature(BODY, "whsec_forged"),
        signature(BODY, ""),
        f"t={'9' * 5_000},v1=0",
        # Signed, but with another timestamp.
        "t=" + str(int(time.time()) - 5) + "," + signature(BODY, SECRET).partition(",")[2],
    ],
)
def test_a_missing_or_forged_header_is_refused(reader: Stripe, header: str) -> None:
    with pytest.raises(BadSignature):
        reader.read_webhook(BODY, header)


def test_a_signature_older_than_five_minutes_is_refused(reader: Stripe) -> None:
    now = int(time.time())
    assert reader.read_webhook(BODY, signature(BODY, SECRET, now - 290))
    with pytest.raises(BadSignature):
        reader.read_webhook(BODY, signature(BODY, SECRET, now - 310))


def test_without_a_secret_every_request_is_refused() -> None:
    for secrets in ((), ("",)):
        unconfigured = Stripe(KEY, return_url=RETURN_URL, webhook_secrets=secrets)
        with pytest.raises(BadSignature):
            unconfigured.read_webhook(BODY, signature(BODY, ""))


SUBSCRIPTION = {"id": "sub_1", "object": "subscription", "metadata": {"account": str(ACCOUNT)}}
CHANGED = SubscriptionChanged("sub_1", ACCOUNT)
CHARGE = {"id": "ch_1", "object": "charge", "amount_refunded": 300, "payment_intent": "pi_1"}
REFUND = {"id": "re_1", "object": "refund", "status": "failed", "payment_intent": "pi_1"}
DISPUTE = {"id": "du_1", "object": "dispute", "status": "won", "payment_intent": {"id": "pi_1"}}


def invoice(details: Any) -> dict[str, Any]:
    return {"id": "in_1", "object": "invoice", "parent": {"subscription_details": details}}


OUR_INVOICE = invoice({"subscription": "sub_1", "metadata": {"account": str(ACCOUNT)}})
# As in API versions before 2025-03-31.
OLD_INVOICE = {
    "id": "in_1",
    "object": "invoice",
    "subscription": "sub_1",
    "subscription_details": {"metadata": {"account": str(ACCOUNT)}},
}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (event("checkout.session.completed", session()), PAYMENT),
        (event("checkout.session.async_payment_succeeded", session()), PAYMENT),
        (
            event(
                "checkout.session.completed",
                session(payment_intent={"id": "pi_1"}, customer={"id": "cus_1"}),
            ),
            PAYMENT,
        ),
        (
            event(
                "checkout.session.completed",
                session(mode="subscription", subscription="sub_1", payment_intent=None),
            ),
            CHANGED,
        ),
        (event("charge.refunded", CHARGE), PaymentChanged("pi_1")),
        (event("charge.refund.updated", REFUND), PaymentChanged("pi_1")),
        (event("refund.updated", REFUND), PaymentChanged("pi_1")),
        (event("refund.failed", REFUND), PaymentChanged("pi_1")),
        (event("charge.dispute.created", DISPUTE), PaymentChanged("pi_1")),
        (event("charge.dispute.funds_withdrawn", DISPUTE), PaymentChanged("pi_1")),
        (event("charge.dispute.funds_reinstated", DISPUTE), PaymentChanged("pi_1")),
        (event("charge.dispute.closed", DISPUTE), PaymentChanged("pi_1")),
        (event("customer.subscription.created", SUBSCRIPTION), CHANGED),
        (event("customer.subscription.updated", SUBSCRIPTION), CHANGED),
        (event("customer.subscription.deleted", SUBSCRIPTION), CHANGED),
        (event("customer.subscription.trial_will_end", SUBSCRIPTION), CHANGED),
        (event("invoice.paid", OUR_INVOICE), CHANGED),
        (event("invoice.payment_failed", OUR_INVOICE), CHANGED),
        (event("invoice.paid", OLD_INVOICE), CHANGED),
    ],
)
def test_relevant_events_are_read(
    reader: Stripe, sent: dict[str, Any], expected: WebhookEvent
) -> None:
    body = json.dumps(sent).encode()
    assert reader.read_webhook(body, signature(body, SECRET)) == expected


@pytest.mark.parametrize(
    "sent",
    [
        event("checkout.session.completed", session(payment_status="unpaid")),
        event("checkout.session.completed", session(mode="setup")),
        event("checkout.session.completed", session(metadata={})),
        event("checkout.session.completed", session(metadata=None)),
        event("checkout.session.completed", session(metadata={"account": "x", "kind": "topup"})),
        event("checkout.session.completed", session(metadata={"account": 7, "kind": "topup"})),
        event("checkout.session.completed", session(metadata={"account": str(ACCOUNT)})),
        event("checkout.session.completed", session(payment_intent=None)),
        event("checkout.session.completed", session(amount_total="1250")),
        event("checkout.session.completed", session(amount_total=None)),
        event("checkout.session.expired", session()),
        event("checkout.session.completed", session(mode="subscription", subscription=None)),
        event("charge.refunded", CHARGE | {"payment_intent": None}),
        event("refund.failed", REFUND | {"payment_intent": 7}),
        event("charge.dispute.closed", {"id": "du_1", "charge": "ch_1"}),
        event("charge.succeeded", CHARGE),
        event("customer.subscription.updated", SUBSCRIPTION | {"metadata": {}}),
        event("customer.subscription.updated", SUBSCRIPTION | {"id": 5}),
        event("invoice.paid", invoice(None)),
        event("invoice.paid", {"id": "in_1", "parent": None, "subscription": "sub_1"}),
        event("invoice.paid", OLD_INVOICE | {"subscription_details": {"metadata": {}}}),
        event("invoice.created", OUR_INVOICE),
        event("customer.created", {"id": "cus_1"}),
        event("invoice.paid", []),
        event("invoice.paid", None),
        {"id": "evt_1", "type": "invoice.paid"},
        {"id": "evt_1", "type": "invoice.paid", "data": "x"},
        {"id": 1, "type": "invoice.paid", "data": {"object": OUR_INVOICE}},
        {"id": "evt_1", "type": ["invoice.paid"], "data": {"object": OUR_INVOICE}},
        {},
        [],
        None,
        "evt_1",
        7,
    ],
)
def test_irrelevant_and_malformed_events_are_ignored(reader: Stripe, sent: Any) -> None:
    body = json.dumps(sent).encode()
    assert reader.read_webhook(body, signature(body, SECRET)) is None


@pytest.mark.parametrize("body", [b"", b"{", b"\x00", b"[" * 100_000, b'{"id": NaN}'])
def test_signed_junk_is_ignored(reader: Stripe, body: bytes) -> None:
    assert reader.read_webhook(body, signature(body, SECRET)) is None


async def test_the_simulated_servers_events_are_read(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    topup = await stripe.top_up_checkout(payer, 700, uuid4().hex)
    await stripe_server.pay(topup.url)
    plan = await stripe.plan_checkout(payer, "standard", 1, uuid4().hex)
    await stripe_server.pay(plan.url)
    session = await stripe_server.api("GET", f"/v1/checkout/sessions/{topup.id}")
    payment = session["payment_intent"]
    refund = await stripe_server.refund(payment)
    await stripe_server.update_refund(refund["id"], "failed")
    dispute = await stripe_server.dispute(payment)
    await stripe_server.update_dispute(dispute["id"], "won")
    sent = [
        e
        for e in await stripe_server.events()
        if str(payer.account_id) in json.dumps(e) or payment in json.dumps(e)
    ]

    read = {e["type"]: stripe.read_webhook(*stripe_server.signed(e)) for e in sent}

    subscription = await stripe_server.api("GET", f"/v1/checkout/sessions/{plan.id}")
    changed = SubscriptionChanged(subscription["subscription"], payer.account_id)
    assert {kind: event for kind, event in read.items() if event} == {
        "checkout.session.completed": changed,
        "customer.subscription.created": changed,
        "invoice.paid": changed,
    } | dict.fromkeys(
        (
            "charge.dispute.closed",
            "charge.dispute.created",
            "charge.dispute.funds_reinstated",
            "charge.dispute.funds_withdrawn",
            "charge.refund.updated",
            "charge.refunded",
            "refund.created",
            "refund.failed",
            "refund.updated",
        ),
        PaymentChanged(payment),
    )
    altered = next(deepcopy(e) for e in sent if e["type"] == "checkout.session.completed")
    body, header = stripe_server.signed(altered)
    with pytest.raises(BadSignature):
        stripe.read_webhook(body.replace(b"700", b"900"), header)
