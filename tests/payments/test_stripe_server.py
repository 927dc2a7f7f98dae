"""The simulated Stripe server itself: its page, its webhooks and its stored data."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rota.dev import ports
from rota.payments.port import Product
from rota.payments.stripe import Stripe
from tests.payments.conftest import PRODUCTS, RETURN_URL, TimedStripeServer, new_payer
from tests.payments.stripe_server import GOOD_CARD, KEY, StripeServer


async def test_the_page_shows_the_order_and_sends_the_browser_back(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    payer = await new_payer(stripe, "<ada>@example.test")
    checkout = await stripe.plan_checkout(payer, "corporate", 7, uuid4().hex, trial_days=14)
    shown = await stripe_server.http.get(checkout.url)
    assert shown.headers["content-type"].startswith("text/html")
    for words in ("$350.00 a month", "Corporate × 7", "14 days", GOOD_CARD, "&lt;ada&gt;@"):
        assert words in shown.text
    assert await stripe_server.cancel_checkout(checkout.url) == f"{RETURN_URL}?checkout=cancelled"
    wrong = await stripe_server.http.post(checkout.url, data={"action": "pay", "card": "1234"})
    assert (wrong.status_code, "not a test card" in wrong.text) == (402, True)
    # After a cancellation, the page can still be paid.
    assert checkout.id in await stripe_server.pay(checkout.url)
    assert "has been paid." in (await stripe_server.http.get(checkout.url)).text
    again = await stripe_server.http.post(checkout.url, data={"action": "pay", "card": GOOD_CARD})
    assert again.status_code == 200
    assert (await stripe_server.http.get("/pay/cs_test_nobody")).status_code == 404


async def test_a_name_of_another_machine_is_refused(stripe_server: StripeServer) -> None:
    headers = {"Host": "evil.example"}
    for path in ("/", "/_control/clock", "/v1/customers"):
        assert (await stripe_server.http.get(path, headers=headers)).status_code == 421


async def test_the_home_page_links_to_open_checkouts(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    checkout = await stripe.top_up_checkout(await new_payer(stripe), 1_234, uuid4().hex)
    home = (await stripe_server.http.get("/")).text
    assert f'href="{checkout.url}"' in home
    assert "$12.34" in home


async def test_a_refund_cannot_exceed_the_payment(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    checkout = await stripe.top_up_checkout(await new_payer(stripe), 500, uuid4().hex)
    await stripe_server.pay(checkout.url)
    session = await stripe_server.api("GET", f"/v1/checkout/sessions/{checkout.id}")

    async def refund(**form: str) -> tuple[int, str | None]:
        answer = await stripe_server.http.post(
            "/v1/refunds",
            data={"payment_intent": session["payment_intent"]} | form,
            headers={"Authorization": f"Bearer {KEY}"},
        )
        return answer.status_code, answer.json().get("error", {}).get("code")

    assert await refund(amount="501") == (400, None)
    assert await refund(amount="x") == (400, "parameter_invalid_integer")
    assert await refund(amount="200") == (200, None)
    assert await refund() == (200, None)
    assert await refund() == (400, "charge_already_refunded")


async def test_a_checkout_expires_after_a_day(timed: TimedStripeServer) -> None:
    payer = await new_payer(timed.stripe)
    checkout = await timed.stripe.top_up_checkout(payer, 500, uuid4().hex)
    await timed.stripe_server.advance(days=2)
    assert "has expired" in (await timed.stripe_server.http.get(checkout.url)).text
    assert len(await timed.stripe_server.events("checkout.session.expired")) == 1


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({}, "parameter_missing"),
        ({"mode": "payment"}, "parameter_missing"),
        ({"colour": "red"}, "parameter_unknown"),
    ],
)
async def test_an_invalid_request_gets_stripes_error(
    stripe_server: StripeServer, form: dict[str, str], code: str
) -> None:
    answer = await stripe_server.http.post(
        "/v1/checkout/sessions", data=form, headers={"Authorization": f"Bearer {KEY}"}
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert (await stripe_server.http.get("/v1/prices")).status_code == 401
    assert (await stripe_server.http.get("/v1/nothing")).json()["error"]["type"]


class Listener:
    """Receives webhooks. Answers with the given statuses first, and then with 200."""

    def __init__(self) -> None:
        self.port = ports.find(taken=set())
        self.url = f"http://127.0.0.1:{self.port}/webhooks/stripe"
        self.received: list[tuple[bytes, str]] = []
        self.statuses: Iterator[int] = iter(())
        self.concurrent = self.max_concurrent = 0

    async def receive(self, request: Request) -> Response:
        self.concurrent += 1
        self.max_concurrent = max(self.max_concurrent, self.concurrent)
        self.received.append((await request.body(), request.headers["stripe-signature"]))
        await asyncio.sleep(0.01)
        self.concurrent -= 1
        return Response(status_code=next(self.statuses, 200))

    @property
    def kinds(self) -> list[str]:
        return [json.loads(body)["type"] for body, _ in self.received]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Listener"]:
        app = Starlette(routes=[Route("/webhooks/stripe", self.receive, methods=["POST"])])
        server = uvicorn.Server(uvicorn.Config(app, port=self.port, log_level="warning"))
        running = asyncio.create_task(server._serve())
        try:
            yield self
        finally:
            server.should_exit = True
            await running


async def test_events_are_signed_and_sent_again_until_they_are_received(
    timed: TimedStripeServer,
) -> None:
    listener = Listener()
    listener.statuses = iter((500, 302))
    # The events are sent although the listener is not up yet.
    await timed.stripe_server.send_to(listener.url)
    bought = await timed.subscribe()
    async with listener.listening():
        await timed.stripe_server.settled()
        assert sorted(set(listener.kinds)) == [
            "checkout.session.completed",
            "customer.created",
            "customer.subscription.created",
            "invoice.paid",
        ]
        assert len(listener.received) == 4 + 2
        # Signatures have the real time, no matter how far the clock was moved.
        await timed.stripe_server.advance(days=400)
        assert len([e for e in listener.kinds if e == "invoice.paid"]) >= 13
    for body, header in listener.received:
        timed.stripe.read_webhook(body, header)
    assert (await timed.stripe.subscription(bought.id)).status == "active"


async def test_held_events_are_delivered_in_random_order_and_several_times(
    timed: TimedStripeServer,
) -> None:
    listener = Listener()
    async with listener.listening():
        await timed.stripe_server.hold()
        await timed.stripe_server.send_to(listener.url)
        for _ in range(4):
            await timed.subscribe()
        assert listener.received == []
        created = [event["id"] for event in await timed.stripe_server.events()]

        attempts = await timed.stripe_server.deliver(duplicates=(1, 5), seed=7, at_once=16)

        sent = [attempt["id"] for attempt in attempts]
        assert {attempt["status"] for attempt in attempts} == {200}
        assert set(sent) == set(created)
        assert len(created) < len(sent) == len(listener.received) <= 5 * len(created)
        assert list(dict.fromkeys(sent)) != created
        assert 1 < listener.max_concurrent <= 16
        assert await timed.stripe_server.deliver() == []
        again = await timed.stripe_server.deliver(duplicates=(2, 2), again=True)
        assert len(again) == 2 * len(created)
        await timed.subscribe()
        await timed.stripe_server.release()
        assert len(listener.received) == len(sent) + len(again) + 4


async def test_an_event_that_is_not_received_stays_held(timed: TimedStripeServer) -> None:
    listener = Listener()
    async with listener.listening():
        await timed.stripe_server.hold()
        await timed.stripe_server.send_to(listener.url)
        await timed.subscribe()
        listener.statuses = iter((500,))
        first = await timed.stripe_server.deliver()
        assert sorted(attempt["status"] for attempt in first) == [200, 200, 200, 500]
        (left,) = await timed.stripe_server.deliver()
        assert left["status"] == 200


async def test_a_restart_keeps_the_data(tmp_path: Path) -> None:
    port = ports.find(taken=set())
    listener = Listener()
    async with StripeServer.start(data=tmp_path, port=port) as stripe_server:
        timed = TimedStripeServer(stripe_server)
        await timed.stripe.offer(PRODUCTS)
        await stripe_server.advance(to="2027-01-31T00:00:00Z")
        bought = await timed.subscribe()
        payer = await new_payer(timed.stripe)
        checkout = await timed.stripe.top_up_checkout(payer, 500, "the-key")
    async with (
        listener.listening(),
        StripeServer.start(data=tmp_path, port=port, webhook_url=listener.url) as stripe_server,
    ):
        assert (await stripe_server.now()).date().isoformat() == "2027-01-31"
        assert await timed.stripe.subscription(bought.id) == bought
        assert await timed.stripe.top_up_checkout(payer, 500, "the-key") == checkout
        await stripe_server.settled()
        assert "checkout.session.completed" in listener.kinds
        # A price that loses its lookup key loses it in existing subscriptions too.
        await timed.stripe.offer((Product("standard", "Standard", 2_500),))
        raw = await stripe_server.api("GET", f"/v1/subscriptions/{bought.id}")
        assert raw["items"]["data"][0]["price"]["lookup_key"] is None
        assert (await timed.stripe.subscription(bought.id)).product == "standard"
    await timed.stripe.close()


async def test_it_does_not_start_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ENV", "production")
    with pytest.raises(AssertionError, match="ended instead of starting"):
        async with StripeServer.start():
            pass


async def test_customers_can_be_created_found_and_changed(stripe_server: StripeServer) -> None:
    email = f"{uuid4().hex}@example.test"
    form = {"email": email, "metadata[a]": "1", "metadata[b]": "2"}
    made = await stripe_server.api("POST", "/v1/customers", form)
    changes = {"name": "Ada", "metadata[a]": "", "metadata[c]": "3"}
    changed = await stripe_server.api("POST", f"/v1/customers/{made['id']}", changes)
    assert changed == made | {"name": "Ada", "metadata": {"b": "2", "c": "3"}}
    found = await stripe_server.api("GET", "/v1/customers", params={"email": email})
    assert (found["data"], found["has_more"], found["object"]) == ([changed], False, "list")
    async with httpx.AsyncClient(base_url=stripe_server.url) as unauthenticated:
        assert (await unauthenticated.get(f"/v1/customers/{made['id']}")).status_code == 401
