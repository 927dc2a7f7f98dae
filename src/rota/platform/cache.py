"""An in-memory cache with a maximum number of items and a maximum age."""

import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    def __init__(self, *, max_items: int, max_age_s: float) -> None:
        self._max_items = max_items
        self._max_age_s = max_age_s
        self._items: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        item = self._items.get(key)
        if item is None:
            return None
        if item[0] <= time.monotonic():
            del self._items[key]
            return None
        return item[1]

    def put(self, key: K, value: V) -> None:
        self._items[key] = (time.monotonic() + self._max_age_s, value)
        self._items.move_to_end(key)
        if len(self._items) > self._max_items:
            self._items.popitem(last=False)

    def drop(self, key: K) -> None:
        self._items.pop(key, None)
