"""The simulated Stripe server: the API, the payment page and the controls for tests."""

import asyncio
import contextlib
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from rota.dev.stripe import page
from rota.dev.stripe.api import Api, Endpoint
from rota.dev.stripe.billing import Billing
from rota.dev.stripe.checkout import CardError, Checkout
from rota.dev.stripe.reversals import Reversals
from rota.dev.stripe.store import Store
from rota.dev.stripe.webhooks import Webhooks
from rota.dev.stripe.wire import Object, StripeError, check_names, integer, parse
from rota.payments.port import PaymentFailed, Product
from rota.payments.stripe import Stripe
from rota.platform.http.origins import HostCheck

TICK_S = 0.5
FAULTS = ("timeout", "500", "drop")


@dataclass
class Fault:
    """Makes the next requests to a path fail. Each attempt of a client counts."""

    path: str
    mode: str
    times: int


class Dropped(Response):
    """A response without its body: the connection closes after the headers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


class Server:
    def __init__(
        self, base_url: str, folder: Path | None, secret: str, webhook_url: str | None
    ) -> None:
        self.store = Store(folder / "stripe.json" if folder else None)
        self.webhooks = Webhooks(self.store, secret, webhook_url)
        self.billing = Billing(self.store, self.webhooks.emit)
        self.checkout = Checkout(self.store, self.billing, self.webhooks.emit, base_url)
        self.reversals = Reversals(self.store, self.webhooks.emit)
        self.api = Api(self.store, self.billing, self.checkout, self.reversals, self.webhooks.emit)
        self.faults: list[Fault] = []
        self.base_url = base_url
        # Created when the server starts.
        self.products: tuple[Product, ...] = ()

    def app(self) -> Starlette:
        routes: list[BaseRoute] = [self._route(endpoint) for endpoint in self.api.endpoints]
        routes += [
            Route("/", self.home),
            Route("/pay/{id}", self.pay, methods=["GET", "POST"]),
            Route("/_control/clock", self.clock, methods=["GET", "POST"]),
            Route("/_control/customers/{id}", self.customer, methods=["POST"]),
            Route("/_control/subscriptions/{id}/write_off", self.write_off, methods=["POST"]),
            Route("/_control/subscriptions/{id}/settle", self.settle, methods=["POST"]),
            Route("/_control/refunds/{id}", self.refund, methods=["POST"]),
            Route("/_control/disputes", self.open_dispute, methods=["POST"]),
            Route("/_control/disputes/{id}", self.update_dispute, methods=["POST"]),
            Route("/_control/webhooks", self.control_webhooks, methods=["GET", "POST"]),
            Route("/_control/events", self.events),
            Route("/_control/deliver", self.deliver, methods=["POST"]),
            Route("/_control/faults", self.control_faults, methods=["POST"]),
        ]
        handlers: Any = {StripeError: _show_error, 404: _show_not_found}
        return Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers=handlers,
            middleware=[Middleware(HostCheck)],
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._tick()),
                group.create_task(self.webhooks.run()),
                group.create_task(self._create_products()),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                self.store.save()

    async def _tick(self) -> None:
        """Processes what becomes due while the real time passes."""
        while True:
            self.billing.run_until(self.store.clock.now())
            self.store.save()
            await asyncio.sleep(TICK_S)

    async def _create_products(self) -> None:
        """Does the same as `rota admin payments setup`."""
        if not self.products:
            return
        stripe = Stripe("sk_test_itself", return_url=self.base_url, api_url=self.base_url)
        # The requests go to this server, which can respond while this task waits.
        with contextlib.suppress(PaymentFailed):
            await stripe.offer(self.products)
        await stripe.close()

    def _route(self, endpoint: Endpoint) -> Route:
        async def handle(request: Request) -> Response:
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not key.startswith(("sk_test_", "rk_test_")):
                raise StripeError(
                    "Invalid API Key provided: it must start with sk_test_.", status=401
                )
            text = request.url.query if request.method == "GET" else await _text(request)
            # Stripe's clients send the parameters of a DELETE in the URL.
            text = text or request.url.query
            mode = self._fault(request.url.path)
            if mode == "timeout":
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                return Dropped()
            if mode == "500":
                raise StripeError("An injected fault.", status=500, kind="api_error")
            response = self._respond(endpoint, request, text)
            return Dropped() if mode == "drop" else response

        return Route(endpoint.path, handle, methods=[endpoint.method])

    def _respond(self, endpoint: Endpoint, request: Request, text: str) -> Response:
        headers = {"Request-Id": f"req_{secrets.token_hex(7)}"}
        key = request.headers.get("idempotency-key") if request.method == "POST" else None
        digest = hashlib.sha256(f"{request.url.path}?{text}".encode()).hexdigest()
        if key and (known := self.store.responses.get(key)):
            if known["asked"] != digest:
                raise StripeError(
                    "Keys for idempotent requests can only be used with the same parameters they "
                    f"were first used with. Try using a key other than '{key}'.",
                    kind="idempotency_error",
                )
            return JSONResponse(known["body"], headers=headers | {"Idempotent-Replayed": "true"})
        params = parse(parse_qsl(text, keep_blank_values=True))
        check_names(params, endpoint.accepts)
        found = endpoint.act(params, request.path_params.get("id", ""))
        body = self.store.expanded(found, params.get("expand", []))
        if key:
            self.store.responses[key] = {"asked": digest, "body": body}
        return JSONResponse(body, headers=headers)

    def _fault(self, path: str) -> str | None:
        for fault in self.faults:
            if fault.times and path.startswith(fault.path):
                fault.times -= 1
                return fault.mode
        return None

    async def home(self, _: Request) -> Response:
        sessions = self.store.all("checkout.session")
        return HTMLResponse(page.home(sessions, self.webhooks.url), headers=page.HEADERS)

    async def pay(self, request: Request) -> Response:
        session = self.checkout.find(request.path_params["id"])
        if session["status"] != "open":
            return HTMLResponse(page.closed(session), headers=page.HEADERS)
        order = self.store.orders[session["id"]]
        trial_days = integer(order["data"], "trial_period_days", 0)
        lines = order["lines"]
        if request.method == "GET":
            html = page.checkout(session, lines, trial_days)
            return HTMLResponse(html, headers=page.HEADERS)
        form = dict(parse_qsl(await _text(request)))
        if form.get("action") == "cancel":
            return RedirectResponse(session["cancel_url"] or "/", status_code=303)
        try:
            self.checkout.pay(session, form.get("card", ""))
        except CardError as error:
            html = page.checkout(session, lines, trial_days, form.get("card", ""), str(error))
            return HTMLResponse(html, status_code=402, headers=page.HEADERS)
        url = session["success_url"].replace("{CHECKOUT_SESSION_ID}", session["id"])
        return RedirectResponse(url, status_code=303)

    async def clock(self, request: Request) -> Response:
        """Moving the clock forward processes everything that becomes due on the way."""
        now = self.store.clock.now()
        if request.method == "POST":
            body = await _json(request)
            if "now" in body:
                moment = int(datetime.fromisoformat(body["now"]).timestamp())
            else:
                moment = now + int(body["advance_seconds"])
            if moment < now:
                raise StripeError("The clock cannot go back. Send a later time.")
            self.billing.run_until(moment)
            self.store.clock.set(moment)
            self.store.dirty = True
            now = moment
        time = datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z")
        return JSONResponse({"now": time})

    async def customer(self, request: Request) -> Response:
        customer = self.store.get("customer", request.path_params["id"])
        body = await _json(request)
        if "declines" in body:
            self.store.declining[customer["id"]] = bool(body["declines"])
        if "debits" in body:
            self.store.debiting[customer["id"]] = bool(body["debits"])
        return JSONResponse({"id": customer["id"], **body})

    async def write_off(self, request: Request) -> Response:
        subscription = self.store.get("subscription", request.path_params["id"])
        return JSONResponse(self.billing.write_off(subscription))

    async def settle(self, request: Request) -> Response:
        subscription = self.store.get("subscription", request.path_params["id"])
        return JSONResponse(self.billing.settle(subscription))

    async def refund(self, request: Request) -> Response:
        status = str((await _json(request)).get("status"))
        return JSONResponse(self.reversals.update_refund(request.path_params["id"], status))

    async def open_dispute(self, request: Request) -> Response:
        body = await _json(request)
        payment, cents = str(body.get("payment_intent")), body.get("amount")
        inquiry = bool(body.get("inquiry"))
        return JSONResponse(self.reversals.open_dispute(payment, cents, inquiry=inquiry))

    async def update_dispute(self, request: Request) -> Response:
        body = await _json(request)
        dispute = self.reversals.update_dispute(
            request.path_params["id"], str(body.get("status")), body.get("returned")
        )
        return JSONResponse(dispute)

    async def control_webhooks(self, request: Request) -> Response:
        if request.method == "POST":
            body = await _json(request)
            self.webhooks.set(url=body.get("url"), hold=body.get("hold"))
        return JSONResponse(
            {
                "url": self.webhooks.url,
                "hold": self.webhooks.hold,
                "held": len(self.webhooks.held),
                "pending": self.webhooks.pending,
            }
        )

    async def events(self, _: Request) -> Response:
        return JSONResponse({"events": self.webhooks.events})

    async def deliver(self, request: Request) -> Response:
        body = await _json(request)
        least, most = body.get("duplicates", (1, 1))
        attempts = await self.webhooks.deliver(
            again=bool(body.get("again")),
            after=int(body.get("after", 0)),
            duplicates=(int(least), int(most)),
            seed=int(body.get("seed", 0)),
            reverse=bool(body.get("reverse")),
            at_once=int(body.get("at_once", 1)),
        )
        return JSONResponse({"attempts": attempts})

    async def control_faults(self, request: Request) -> Response:
        body = await _json(request)
        if body.get("mode") not in FAULTS:
            raise StripeError(f"Invalid fault. Use one of: {', '.join(FAULTS)}.", param="mode")
        # A new fault replaces earlier ones.
        self.faults = [Fault(body["path"], body["mode"], int(body.get("times", 1)))]
        return JSONResponse({"faults": [vars(fault) for fault in self.faults]})


async def _text(request: Request) -> str:
    return (await request.body()).decode("utf-8", "replace")


async def _json(request: Request) -> Object:
    try:
        body = json.loads(await request.body())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise StripeError("The request body must be a JSON object.")
    return body


async def _show_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, StripeError)
    return JSONResponse(error.body, status_code=error.status)


async def _show_not_found(request: Request, _: Exception) -> Response:
    message = f"Unrecognized request URL ({request.method}: {request.url.path})."
    return JSONResponse(StripeError(message).body, status_code=404)
