"""The simulated Stripe server for tests: a separate process, and its controls.

async with StripeServer.start() as stripe_server:
    async with Service.start(stack, variant="a", **stripe_server.settings) as service:
        await stripe_server.send_to(f"http://127.0.0.1:{service.settings.port}/webhooks/stripe")
        …
        await stripe_server.pay(checkout_url)
        await stripe_server.settled()
        await stripe_server.advance(days=31)
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import httpx
from pydantic import SecretStr

from rota.dev import ports
from rota.dev.stripe.webhooks import body_of, signature

KEY = "sk_test_rota"
SECRET = "whsec_tests"
GOOD_CARD = "4242 4242 4242 4242"
DECLINED_CARD = "4000 0000 0000 0002"
# The first payment succeeds and all later ones fail.
FAILS_LATER_CARD = "4000 0000 0000 0341"


@dataclass
class StripeServer:
    url: str
    http: httpx.AsyncClient
    secret: str = SECRET

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        *,
        data: Path | None = None,
        webhook_url: str | None = None,
        port: int = 0,
        variant: str | None = None,
    ) -> AsyncIterator["StripeServer"]:
        """Without `data`, it forgets everything at its end. With a variant, it sells its plans."""
        port = port or ports.find(taken=set())
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rota.dev.stripe",
            "--port",
            str(port),
            "--webhook-secret",
            SECRET,
            *(("--data", str(data)) if data else ()),
            *(("--webhook-url", webhook_url) if webhook_url else ()),
            *(("--variant", variant) if variant else ()),
        )
        url = f"http://127.0.0.1:{port}"
        try:
            async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
                await _until_up(http, process)
                yield cls(url, http)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that make a service use this server: `Service.start(…, **settings)`."""
        return {
            "stripe_secret_key": SecretStr(KEY),
            "stripe_webhook_secrets": (SecretStr(self.secret),),
            "stripe_api_url": self.url,
        }

    # The hosted page.

    async def pay(self, checkout_url: str, card: str = GOOD_CARD) -> str:
        """Pays on the hosted page. Returns where the page sends the browser."""
        response = await self.http.post(checkout_url, data={"action": "pay", "card": card})
        assert response.status_code == 303, response.text
        return response.headers["location"]

    async def cancel_checkout(self, checkout_url: str) -> str:
        """Cancels on the hosted page. Returns where the page sends the browser."""
        response = await self.http.post(checkout_url, data={"action": "cancel"})
        assert response.status_code == 303, response.text
        return response.headers["location"]

    # Time, cards and refunds.

    async def now(self) -> datetime:
        return datetime.fromisoformat((await self._ok("GET", "/_control/clock"))["now"])

    async def advance(
        self, *, days: float = 0, seconds: float = 0, to: datetime | str | None = None
    ) -> None:
        """Moves the clock forward. Everything that becomes due happens in order.

        Waits until the webhooks are delivered, unless they are held.
        """
        passed = timedelta(days=days, seconds=seconds).total_seconds()
        asked: dict[str, Any] = {"advance_seconds": int(passed)}
        if to is not None:
            asked = {"now": to if isinstance(to, str) else to.isoformat()}
        await self._ok("POST", "/_control/clock", asked)
        await self.settled()

    async def decline(self, customer_id: str, declines: bool = True) -> None:
        """Makes the customer's card fail, or work again."""
        await self._ok("POST", f"/_control/customers/{customer_id}", {"declines": declines})

    async def debit(self, customer_id: str, debits: bool = True) -> None:
        """The customer's renewals are paid by bank debit, which takes until `settle`."""
        await self._ok("POST", f"/_control/customers/{customer_id}", {"debits": debits})

    async def settle(self, subscription_id: str) -> None:
        """The first bank debit that is processed for a subscription succeeds."""
        await self._ok("POST", f"/_control/subscriptions/{subscription_id}/settle")

    async def write_off(self, subscription_id: str) -> None:
        """Marks the last invoice of a subscription as uncollectible."""
        await self._ok("POST", f"/_control/subscriptions/{subscription_id}/write_off")

    async def refund(self, payment_intent: str, amount_cents: int | None = None) -> dict[str, Any]:
        form = {"payment_intent": payment_intent} | (
            {"amount": str(amount_cents)} if amount_cents else {}
        )
        return await self.api("POST", "/v1/refunds", form)

    async def update_refund(self, refund_id: str, status: str) -> dict[str, Any]:
        """What the bank does later: `failed`, `canceled` …"""
        return await self._ok("POST", f"/_control/refunds/{refund_id}", {"status": status})

    async def dispute(
        self, payment_intent: str, amount_cents: int | None = None, *, inquiry: bool = False
    ) -> dict[str, Any]:
        """Opens a dispute, which takes the money, or an inquiry, which does not."""
        asked = {"payment_intent": payment_intent, "amount": amount_cents, "inquiry": inquiry}
        return await self._ok("POST", "/_control/disputes", asked)

    async def update_dispute(
        self, dispute_id: str, status: str, returned_cents: int | None = None
    ) -> dict[str, Any]:
        """What the bank decides: `won`, `lost`, `warning_closed` …"""
        asked = {"status": status, "returned": returned_cents}
        return await self._ok("POST", f"/_control/disputes/{dispute_id}", asked)

    # Webhooks.

    async def send_to(self, webhook_url: str) -> None:
        await self._ok("POST", "/_control/webhooks", {"url": webhook_url})

    async def settled(self, deadline_s: float = 120) -> None:
        """Waits until every event that is not held is delivered."""
        async with asyncio.timeout(deadline_s):
            while True:
                state = await self._ok("GET", "/_control/webhooks")
                if state["url"] is None or not state["pending"]:
                    return
                await asyncio.sleep(0.02)

    async def hold(self) -> None:
        """Collects events instead of sending them."""
        await self._ok("POST", "/_control/webhooks", {"hold": True})

    async def release(self) -> None:
        """Sends the held events in order, and stops holding."""
        await self._ok("POST", "/_control/webhooks", {"hold": False})
        await self.settled()

    async def deliver(
        self,
        *,
        duplicates: tuple[int, int] = (1, 1),
        seed: int = 0,
        at_once: int = 1,
        again: bool = False,
        after: int = 0,
        reverse: bool = False,
    ) -> list[dict[str, Any]]:
        """Sends the held events shuffled and several times; with `again`, all events so far but
        the first `after`.

        With `reverse`, the newest event comes first instead.

        Returns every attempt with its response status, or 0 without a response. Delivered events
        are no longer held.
        """
        asked = {"duplicates": duplicates, "seed": seed, "at_once": at_once, "again": again}
        asked |= {"after": after, "reverse": reverse}
        attempts: list[dict[str, Any]] = (await self._ok("POST", "/_control/deliver", asked))[
            "attempts"
        ]
        return attempts

    async def events(self, *kinds: str) -> list[dict[str, Any]]:
        """All events so far, or those of some types, oldest first."""
        found: list[dict[str, Any]] = (await self._ok("GET", "/_control/events"))["events"]
        return [event for event in found if not kinds or event["type"] in kinds]

    def signed(
        self, event: dict[str, Any], secret: str | None = None, at: int | None = None
    ) -> tuple[bytes, str]:
        """The body and the Stripe-Signature of an event."""
        body = body_of(event)
        return body, signature(body, secret or self.secret, at)

    # Faults, and the API itself.

    async def fault(
        self, path: str, mode: Literal["timeout", "500", "drop"], times: int = 1
    ) -> None:
        """Makes the next requests under the path fail. Each attempt of a client counts.

        "drop" acts and does not respond; the other modes do not act.
        """
        await self._ok("POST", "/_control/faults", {"path": path, "mode": mode, "times": times})

    async def api(
        self,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Calls Stripe's API without the adapter."""
        response = await self.http.request(
            method, path, data=form, params=params, headers={"Authorization": f"Bearer {KEY}"}
        )
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    async def _ok(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        response = await self.http.request(method, path, json=body)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found


async def _until_up(
    http: httpx.AsyncClient, process: asyncio.subprocess.Process, deadline_s: float = 120
) -> None:
    async with asyncio.timeout(deadline_s):
        while True:
            assert process.returncode is None, (
                "the simulated Stripe server ended instead of starting"
            )
            try:
                if (await http.get("/_control/clock")).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)
