"""Sends signed webhooks, retries them, and can hold, repeat and reorder them for tests."""

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
# Pauses between attempts. The last one repeats.
BACKOFF_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
TIMEOUT_S = 20.0


def body_of(event: Object) -> bytes:
    return json.dumps(event, indent=2).encode()


def signature(body: bytes, secret: str, at: int | None = None) -> str:
    """Signed with the real time, not with the time of the simulated clock."""
    moment = int(time.time()) if at is None else at
    signed = hmac.new(secret.encode(), b"%d.%s" % (moment, body), hashlib.sha256)
    return f"t={moment},v1={signed.hexdigest()}"


class Webhooks:
    def __init__(self, store: Store, secret: str, url: str | None = None) -> None:
        self._store = store
        self._secret = secret
        self.url = url
        self.hold = False
        # Not delivered yet: held events here, the others in the queue.
        self.held: dict[str, Object] = {}
        self._queue: list[Object] = []
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        for event in store.tables["event"].values():
            if event["pending_webhooks"]:
                self._queue.append(event)

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
            self._queue.append(event)
            self._wake.set()

    @property
    def events(self) -> list[Object]:
        return list(self._store.tables["event"].values())

    @property
    def pending(self) -> int:
        """How many events are not delivered, without the held ones."""
        undelivered = [event for event in self.events if event["pending_webhooks"]]
        return len(undelivered) - len(self.held)

    def set(self, *, url: str | None = None, hold: bool | None = None) -> None:
        self.url = url or self.url
        if hold is not None:
            self.hold = hold
        if not self.hold:
            self._queue += self.held.values()
            self.held.clear()
        self._wake.set()

    async def run(self) -> None:
        """Sends queued events in order. A failed event is retried without blocking the others."""
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
            while True:
                self._wake.clear()
                while self.url and self._queue:
                    event = self._queue.pop(0)
                    if not _succeeded(await self._send(client, event)):
                        task = asyncio.create_task(self._retry(client, event))
                        self._tasks.add(task)
                        task.add_done_callback(self._tasks.discard)
                await self._wake.wait()

    async def _retry(self, client: httpx.AsyncClient, event: Object) -> None:
        attempt = 0
        while event["pending_webhooks"]:
            await asyncio.sleep(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
            attempt += 1
            await self._send(client, event)

    async def deliver(
        self,
        *,
        again: bool,
        after: int,
        duplicates: tuple[int, int],
        seed: int,
        at_once: int,
        reverse: bool,
    ) -> list[Object]:
        """Sends held events, or those after the first `after` again, with duplicates.

        They are shuffled, or the newest comes first.
        """
        chance = random.Random(seed)  # noqa: S311
        chosen = self.events[after:] if again else list(self.held.values())
        copies = [event for event in chosen for _ in range(chance.randint(*duplicates))]
        if reverse:
            copies.reverse()
        else:
            chance.shuffle(copies)
        slots = asyncio.Semaphore(at_once)

        async def attempt(client: httpx.AsyncClient, event: Object) -> Object:
            async with slots:
                status = await self._send(client, event)
            if _succeeded(status):
                self.held.pop(event["id"], None)
            return {"id": event["id"], "type": event["type"], "status": status}

        limits = httpx.Limits(max_connections=at_once)
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, limits=limits) as client:
            return await asyncio.gather(*[attempt(client, event) for event in copies])

    async def _send(self, client: httpx.AsyncClient, event: Object) -> int:
        """Returns the status, or 0 if there was no response."""
        body = body_of(event)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, self._secret),
            "User-Agent": "Stripe/1.0 (simulated)",
        }
        try:
            response = await client.post(self.url or "", content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL):
            return 0
        if _succeeded(response.status_code):
            event["pending_webhooks"] = 0
            self._store.dirty = True
        return response.status_code


def _succeeded(status: int) -> bool:
    return 200 <= status < 300
