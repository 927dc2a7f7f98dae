"""Telling the service what happened: signed, again until it is heard, and badly on demand."""

import asyncio
import hashlib
import hmac
import json
import random
import time
from copy import deepcopy

import httpx

from rota.dev.stripe.store import Store
from rota.dev.stripe.wire import Object

API_VERSION = "2026-10-28.endive"
# Between attempts; the last one over and over.
BACKOFF_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
ANSWER_WITHIN_S = 20.0


def body_of(event: Object) -> bytes:
    return json.dumps(event, indent=2).encode()


def signature(body: bytes, secret: str, at: int | None = None) -> str:
    """Signed at the real time, whatever the clock here was turned to."""
    moment = int(time.time()) if at is None else at
    signed = hmac.new(secret.encode(), b"%d.%s" % (moment, body), hashlib.sha256)
    return f"t={moment},v1={signed.hexdigest()}"


class Webhooks:
    def __init__(self, store: Store, secret: str, url: str | None = None) -> None:
        self._store = store
        self._secret = secret
        self.url = url
        self.hold = False
        # Those that have still to be heard: held back, or on their way.
        self.held: dict[str, Object] = {}
        self._waiting: list[Object] = []
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        for event in store.tables["event"].values():
            if event["pending_webhooks"]:
                self._waiting.append(event)

    def emit(self, kind: str, about: Object) -> None:
        event = self._store.add(
            "event",
            api_version=API_VERSION,
            type=kind,
            data={"object": deepcopy(about)},
            pending_webhooks=1,
            request={"id": None, "idempotency_key": None},
        )
        if self.hold:
            self.held[event["id"]] = event
        else:
            self._waiting.append(event)
            self._wake.set()

    @property
    def events(self) -> list[Object]:
        return list(self._store.tables["event"].values())

    @property
    def pending(self) -> int:
        """Not heard yet, apart from those that are held back."""
        unheard = [event for event in self.events if event["pending_webhooks"]]
        return len(unheard) - len(self.held)

    def set(self, *, url: str | None = None, hold: bool | None = None) -> None:
        self.url = url or self.url
        if hold is not None:
            self.hold = hold
        if not self.hold:
            self._waiting += self.held.values()
            self.held.clear()
        self._wake.set()

    async def run(self) -> None:
        """Send what waits, in order; what is not heard goes its own slow way."""
        async with httpx.AsyncClient(timeout=ANSWER_WITHIN_S, trust_env=False) as client:
            while True:
                self._wake.clear()
                while self.url and self._waiting:
                    event = self._waiting.pop(0)
                    if not self._heard(await self._send(client, event)):
                        task = asyncio.create_task(self._again(client, event))
                        self._tasks.add(task)
                        task.add_done_callback(self._tasks.discard)
                await self._wake.wait()

    async def _again(self, client: httpx.AsyncClient, event: Object) -> None:
        attempt = 0
        while event["pending_webhooks"]:
            await asyncio.sleep(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
            attempt += 1
            await self._send(client, event)

    async def deliver(
        self, *, again: bool, duplicates: tuple[int, int], seed: int, at_once: int
    ) -> list[Object]:
        """Send what is held, or everything once more, in any order and several times."""
        chance = random.Random(seed)  # noqa: S311
        chosen = self.events if again else list(self.held.values())
        copies = [event for event in chosen for _ in range(chance.randint(*duplicates))]
        chance.shuffle(copies)
        turns = asyncio.Semaphore(at_once)

        async def attempt(client: httpx.AsyncClient, event: Object) -> Object:
            async with turns:
                status = await self._send(client, event)
            if self._heard(status):
                self.held.pop(event["id"], None)
            return {"id": event["id"], "type": event["type"], "status": status}

        limits = httpx.Limits(max_connections=at_once)
        async with httpx.AsyncClient(
            timeout=ANSWER_WITHIN_S, trust_env=False, limits=limits
        ) as client:
            return await asyncio.gather(*(attempt(client, event) for event in copies))

    async def _send(self, client: httpx.AsyncClient, event: Object) -> int:
        """The status that came back, 0 if nothing did."""
        body = body_of(event)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, self._secret),
            "User-Agent": "Stripe/1.0 (stand-in)",
        }
        try:
            answer = await client.post(self.url or "", content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL):
            return 0
        if self._heard(answer.status_code):
            event["pending_webhooks"] = 0
            self._store.dirty = True
        return answer.status_code

    @staticmethod
    def _heard(status: int) -> bool:
        return 200 <= status < 300
