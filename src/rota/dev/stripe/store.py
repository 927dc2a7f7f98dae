"""What the stand-in knows: objects in Stripe's shapes, and the time it believes in."""

import json
import secrets
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from rota.dev.directory import DataDirectory
from rota.dev.stripe.wire import Object, StripeError

PREFIXES = {
    "customer": "cus",
    "checkout.session": "cs_test",
    "payment_intent": "pi",
    "charge": "ch",
    "refund": "re",
    "product": "prod",
    "price": "price",
    "subscription": "sub",
    "subscription_item": "si",
    "invoice": "in",
    "event": "evt",
}

# Told of everything that happens: the kind of event, and what it happened to.
Emit = Callable[[str, Object], None]


class Clock:
    """Real time and what it was turned forward by."""

    def __init__(self) -> None:
        self.offset_s = 0.0
        # While the past is being caught up with, the moment that things happen at.
        self.at: int | None = None

    def now(self) -> int:
        return self.at if self.at is not None else int(time.time() + self.offset_s)

    def turn(self, moment: int) -> None:
        self.offset_s = moment - time.time()


class Store:
    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.clock = Clock()
        self.tables: dict[str, dict[str, Object]] = {kind: {} for kind in PREFIXES}
        # What a checkout session will buy, which Stripe does not tell either.
        self.orders: dict[str, Object] = {}
        # Answers by idempotency key.
        self.answers: dict[str, Object] = {}
        # Customers whose card does not work.
        self.declining: dict[str, bool] = {}
        self.dirty = False
        if file and file.exists():
            self._load(json.loads(file.read_text()))

    def add(self, kind: str, **fields: Any) -> Object:
        self.dirty = True
        given: Object = {
            "id": f"{PREFIXES[kind]}_{secrets.token_hex(12)}",
            "object": kind,
            "created": self.clock.now(),
            "livemode": False,
        }
        made = given | fields
        self.tables[kind][made["id"]] = made
        return made

    def get(self, kind: str, name: str, param: str = "id", status: int = 404) -> Object:
        # Whoever asks may change it.
        self.dirty = True
        found = self.tables[kind].get(name)
        if found is None:
            raise StripeError(
                f"No such {kind}: '{name}'", status=status, code="resource_missing", param=param
            )
        return found

    def all(self, kind: str) -> list[Object]:
        """The newest first."""
        return list(reversed(self.tables[kind].values()))

    def expanded(self, answer: Object, paths: list[str]) -> Object:
        """The answer with the objects in it that it otherwise only names."""
        answer = deepcopy(answer)
        for path in paths:
            *way, last = path.split(".")
            nodes = [answer]
            for step in way:
                inner = [node.get(step) for node in nodes]
                nodes = [n for i in inner for n in (i if isinstance(i, list) else [i]) if n]
            for node in nodes:
                node[last] = deepcopy(self._named(node.get(last)))
        return answer

    def _named(self, name: Any) -> Any:
        return next((table[name] for table in self.tables.values() if name in table), name)

    def save(self) -> None:
        if self._file and self.dirty:
            self.dirty = False
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept = {
                "offset_s": self.clock.offset_s,
                "tables": self.tables,
                "orders": self.orders,
                "answers": self.answers,
                "declining": self.declining,
            }
            DataDirectory.write_private(self._file, json.dumps(kept))

    def _load(self, kept: Object) -> None:
        self.clock.offset_s = kept["offset_s"]
        self.tables |= kept["tables"]
        self.orders = kept["orders"]
        self.answers = kept["answers"]
        self.declining = kept["declining"]
        # A price is one thing wherever it is shown, also after it was written down.
        items = [i for s in self.tables["subscription"].values() for i in s["items"]["data"]]
        lines = [line for order in self.orders.values() for line in order["lines"]]
        for holder in (*items, *(line for line in lines if "price" in line)):
            holder["price"] = self.tables["price"][holder["price"]["id"]]
