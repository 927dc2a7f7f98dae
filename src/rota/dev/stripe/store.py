"""The data of the simulated Stripe server: objects in Stripe's format, and its clock."""

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
    "dispute": "du",
    "balance_transaction": "txn",
    "product": "prod",
    "price": "price",
    "subscription": "sub",
    "subscription_item": "si",
    "invoice": "in",
    "event": "evt",
}

# Called for every event, with its type and its object.
Emit = Callable[[str, Object], None]


class Clock:
    """The real time plus an offset."""

    def __init__(self) -> None:
        self.offset_s = 0.0
        # Set while due events are processed: the time of the current event.
        self.at: int | None = None

    def now(self) -> int:
        return self.at if self.at is not None else int(time.time() + self.offset_s)

    def set(self, moment: int) -> None:
        self.offset_s = moment - time.time()


class Store:
    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.clock = Clock()
        self.tables: dict[str, dict[str, Object]] = {kind: {} for kind in PREFIXES}
        # The line items of each checkout session, which Stripe does not return either.
        self.orders: dict[str, Object] = {}
        # Responses by idempotency key.
        self.responses: dict[str, Object] = {}
        # Customers whose card is declined.
        self.declining: dict[str, bool] = {}
        # Customers who pay renewals by bank debit, and the invoices whose debits are processing.
        self.debiting: dict[str, bool] = {}
        self.processing: dict[str, bool] = {}
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
        # The caller can change the object.
        self.dirty = True
        found = self.tables[kind].get(name)
        if found is None:
            raise StripeError(
                f"No such {kind}: '{name}'", status=status, code="resource_missing", param=param
            )
        return found

    def all(self, kind: str) -> list[Object]:
        """All objects of a kind, newest first."""
        return list(reversed(self.tables[kind].values()))

    def expanded(self, found: Object, paths: list[str]) -> Object:
        """The object with the IDs at these paths replaced by the objects."""
        found = deepcopy(found)
        for path in paths:
            *parents, last = path.split(".")
            nodes = [found]
            for step in parents:
                inner = [node.get(step) for node in nodes]
                nodes = [n for i in inner for n in (i if isinstance(i, list) else [i]) if n]
            for node in nodes:
                node[last] = deepcopy(self._named(node.get(last)))
        return found

    def _named(self, name: Any) -> Any:
        return next((table[name] for table in self.tables.values() if name in table), name)

    def save(self) -> None:
        if self._file and self.dirty:
            self.dirty = False
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            saved = {
                "offset_s": self.clock.offset_s,
                "tables": self.tables,
                "orders": self.orders,
                "answers": self.responses,
                "declining": self.declining,
                "debiting": self.debiting,
                "processing": self.processing,
            }
            DataDirectory.write_private(self._file, json.dumps(saved))

    def _load(self, saved: Object) -> None:
        self.clock.offset_s = saved["offset_s"]
        self.tables |= saved["tables"]
        self.orders = saved["orders"]
        self.responses = saved["answers"]
        self.declining = saved["declining"]
        self.debiting = saved.get("debiting", {})
        self.processing = saved.get("processing", {})
        for invoice in self.tables["invoice"].values():
            # Earlier versions did not have these.
            invoice.setdefault("status_transitions", {"paid_at": None})
            invoice.setdefault("auto_advance", True)
        # Subscriptions and orders share one object per price. Saving made copies of it.
        items = [i for s in self.tables["subscription"].values() for i in s["items"]["data"]]
        lines = [line for order in self.orders.values() for line in order["lines"]]
        for holder in (*items, *(line for line in lines if "price" in line)):
            holder["price"] = self.tables["price"][holder["price"]["id"]]
