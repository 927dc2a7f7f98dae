"""The stand-in itself: its page, its webhooks, and that it keeps what it knows."""

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
from rota.payments.port import Payer, Product
from rota.payments.stripe import Stripe
from tests.payments.conftest import PRODUCTS, RETURN_URL, Turned
from tests.payments.standin import GOOD_CARD, KEY, StandIn


async def test_the_page_shows_what_is_bought_and_leads_back(
    stripe: Stripe, standin: StandIn
) -> None:
    payer = Payer(uuid4(), None, "<ada>@example.test")
    checkout = await stripe.plan_checkout(payer, "corporate", 7, uuid4().hex, trial_days=14)
    shown = await standin.http.get(checkout.url)
    assert shown.headers["content-type"].startswith("text/html")
    for words in ("$350.00 a month", "Corporate × 7", "14 days", GOOD_CARD, "&lt;ada&gt;@"):
        assert words in shown.text
    assert await standin.turn_back(checkout.url) == f"{RETURN_URL}?checkout=cancelled"
    wrong = await standin.http.post(checkout.url, data={"action": "pay", "card": "1234"})
    assert (wrong.status_code, "not a test card" in wrong.text) == (402, True)
    # Turning back is no refusal: the page is still there.
    assert checkout.id in await standin.pay(checkout.url)
    assert "has been paid for" in (await standin.http.get(checkout.url)).text
    again = await standin.http.post(checkout.url, data={"action": "pay", "card": GOOD_CARD})
    assert again.status_code == 200
    assert (await standin.http.get("/pay/cs_test_nobody")).status_code == 404


async def test_its_first_page_leads_to_what_waits_to_be_paid(
    stripe: Stripe, standin: StandIn
) -> None:
    checkout = await stripe.top_up_checkout(Payer(uuid4(), None, None), 1_234, uuid4().hex)
    home = (await standin.http.get("/")).text
    assert f'href="{checkout.url}"' in home
    assert "$12.34" in home


async def test_no_more_is_given_back_than_was_paid(stripe: Stripe, standin: StandIn) -> None:
    checkout = await stripe.top_up_checkout(Payer(uuid4(), None, None), 500, uuid4().hex)
    await standin.pay(checkout.url)
    session = await standin.api("GET", f"/v1/checkout/sessions/{checkout.id}")

    async def refund(**form: str) -> tuple[int, str | None]:
        answer = await standin.http.post(
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


async def test_a_page_that_waited_for_a_day_is_closed(turned: Turned) -> None:
    payer = Payer(uuid4(), None, None)
    checkout = await turned.stripe.top_up_checkout(payer, 500, uuid4().hex)
    await turned.standin.advance(days=2)
    assert "has expired" in (await turned.standin.http.get(checkout.url)).text
    assert len(await turned.standin.events("checkout.session.expired")) == 1


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({}, "parameter_missing"),
        ({"mode": "payment"}, "parameter_missing"),
        ({"colour": "red"}, "parameter_unknown"),
    ],
)
async def test_a_wrong_request_is_refused_as_stripe_does(
    standin: StandIn, form: dict[str, str], code: str
) -> None:
    answer = await standin.http.post(
        "/v1/checkout/sessions", data=form, headers={"Authorization": f"Bearer {KEY}"}
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert (await standin.http.get("/v1/prices")).status_code == 401
    assert (await standin.http.get("/v1/nothing")).json()["error"]["type"]


class Listener:
    """Takes webhooks; answers with the statuses it is given, and then with 200."""

    def __init__(self) -> None:
        self.port = ports.find(besides=set())
        self.url = f"http://127.0.0.1:{self.port}/webhooks/stripe"
        self.heard: list[tuple[bytes, str]] = []
        self.answers: Iterator[int] = iter(())
        self.at_once = self.most_at_once = 0

    async def take(self, request: Request) -> Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.heard.append((await request.body(), request.headers["stripe-signature"]))
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return Response(status_code=next(self.answers, 200))

    @property
    def kinds(self) -> list[str]:
        return [json.loads(body)["type"] for body, _ in self.heard]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Listener"]:
        app = Starlette(routes=[Route("/webhooks/stripe", self.take, methods=["POST"])])
        server = uvicorn.Server(uvicorn.Config(app, port=self.port, log_level="warning"))
        running = asyncio.create_task(server._serve())
        try:
            yield self
        finally:
            server.should_exit = True
            await running


async def test_what_happens_is_told_signed_and_again_until_it_is_heard(turned: Turned) -> None:
    listener = Listener()
    listener.answers = iter((500, 302))
    # It is sent although nobody listens yet.
    await turned.standin.send_to(listener.url)
    bought = await turned.subscribe()
    async with listener.listening():
        await turned.standin.settled()
        assert sorted(set(listener.kinds)) == [
            "checkout.session.completed",
            "customer.created",
            "customer.subscription.created",
            "invoice.paid",
        ]
        assert len(listener.heard) == 4 + 2
        # The time of the signature is the real one, however far the clock was turned.
        await turned.standin.advance(days=400)
        assert len([e for e in listener.kinds if e == "invoice.paid"]) >= 13
    for body, header in listener.heard:
        turned.stripe.notice(body, header)
    assert (await turned.stripe.subscription(bought.id)).status == "active"


async def test_held_events_are_delivered_in_any_order_and_any_number_of_times(
    turned: Turned,
) -> None:
    listener = Listener()
    async with listener.listening():
        await turned.standin.hold()
        await turned.standin.send_to(listener.url)
        for _ in range(4):
            await turned.subscribe()
        assert listener.heard == []
        made = [event["id"] for event in await turned.standin.events()]

        attempts = await turned.standin.deliver(duplicates=(1, 5), seed=7, at_once=16)

        sent = [attempt["id"] for attempt in attempts]
        assert {attempt["status"] for attempt in attempts} == {200}
        assert set(sent) == set(made)
        assert len(made) < len(sent) == len(listener.heard) <= 5 * len(made)
        assert list(dict.fromkeys(sent)) != made
        assert 1 < listener.most_at_once <= 16
        assert await turned.standin.deliver() == []
        again = await turned.standin.deliver(duplicates=(2, 2), again=True)
        assert len(again) == 2 * len(made)
        await turned.subscribe()
        await turned.standin.release()
        assert len(listener.heard) == len(sent) + len(again) + 4


async def test_what_is_not_heard_stays_held(turned: Turned) -> None:
    listener = Listener()
    async with listener.listening():
        await turned.standin.hold()
        await turned.standin.send_to(listener.url)
        await turned.subscribe()
        listener.answers = iter((500,))
        first = await turned.standin.deliver()
        assert sorted(attempt["status"] for attempt in first) == [200, 200, 200, 500]
        (left,) = await turned.standin.deliver()
        assert left["status"] == 200


async def test_after_a_restart_it_knows_what_it_knew(tmp_path: Path) -> None:
    port = ports.find(besides=set())
    listener = Listener()
    async with StandIn.start(data=tmp_path, port=port) as standin:
        turned = Turned(standin)
        await turned.stripe.offer(PRODUCTS)
        await standin.advance(to="2027-01-31T00:00:00Z")
        bought = await turned.subscribe()
        payer = Payer(uuid4(), None, None)
        checkout = await turned.stripe.top_up_checkout(payer, 500, "the-key")
    async with (
        listener.listening(),
        StandIn.start(data=tmp_path, port=port, webhook_url=listener.url) as standin,
    ):
        assert (await standin.now()).date().isoformat() == "2027-01-31"
        assert await turned.stripe.subscription(bought.id) == bought
        assert await turned.stripe.top_up_checkout(payer, 500, "the-key") == checkout
        await standin.settled()
        assert "checkout.session.completed" in listener.kinds
        # A price that lost its name has lost it everywhere.
        await turned.stripe.offer((Product("standard", "Standard", 2_500),))
        raw = await standin.api("GET", f"/v1/subscriptions/{bought.id}")
        assert raw["items"]["data"][0]["price"]["lookup_key"] is None
        assert (await turned.stripe.subscription(bought.id)).product == "standard"
    await turned.stripe.close()


async def test_it_is_for_development_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ENV", "production")
    with pytest.raises(AssertionError, match="ended instead of starting"):
        async with StandIn.start():
            pass


async def test_customers_are_made_found_and_changed(standin: StandIn) -> None:
    email = f"{uuid4().hex}@example.test"
    form = {"email": email, "metadata[a]": "1", "metadata[b]": "2"}
    made = await standin.api("POST", "/v1/customers", form)
    changes = {"name": "Ada", "metadata[a]": "", "metadata[c]": "3"}
    changed = await standin.api("POST", f"/v1/customers/{made['id']}", changes)
    assert changed == made | {"name": "Ada", "metadata": {"b": "2", "c": "3"}}
    found = await standin.api("GET", "/v1/customers", params={"email": email})
    assert (found["data"], found["has_more"], found["object"]) == ([changed], False, "list")
    async with httpx.AsyncClient(base_url=standin.url) as stranger:
        assert (await stranger.get(f"/v1/customers/{made['id']}")).status_code == 401
