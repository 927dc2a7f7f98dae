"""In-memory caches with a maximum number of items and a maximum age, or with a maximum size, and
calls that share their result."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

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

    def drop_where(self, matches: Callable[[K, V], bool]) -> None:
        """Drops all items that match. Looks at every item."""
        for key in [key for key, (_, value) in self._items.items() if matches(key, value)]:
            del self._items[key]


class SizedCache(Generic[K, V]):
    """Keeps the items that were used last, up to a total size in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._items: OrderedDict[K, tuple[int, V]] = OrderedDict()
        self._size = 0

    def get(self, key: K) -> V | None:
        item = self._items.get(key)
        if item is None:
            return None
        self._items.move_to_end(key)
        return item[1]

    def put(self, key: K, value: V, size: int) -> None:
        self._drop(key)
        self._items[key] = (size, value)
        self._size += size
        while self._size > self._max_bytes:
            self._drop(next(iter(self._items)))

    def _drop(self, key: K) -> None:
        size, _ = self._items.pop(key, (0, None))
        self._size -= size


class SharedCalls(Generic[K, V]):
    """Runs one call per key at a time. Others with the same key wait for its result."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, call: Callable[[], Coroutine[Any, Any, V]]) -> V:
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(call())
            task.add_done_callback(partial(self._forget, key))
        # The others still wait if this one is cancelled.
        return await asyncio.shield(task)

    def __len__(self) -> int:
        return len(self._running)

    def cancel(self) -> None:
        for task in self._running.values():
            task.cancel()

    def _forget(self, key: K, task: asyncio.Task[V]) -> None:
        del self._running[key]
        retrieve(task)


class RecentCalls(Generic[K, V]):
    """Runs a call unless one with the same key began late enough. Then its result is shared."""

    def __init__(self, *, max_items: int, max_age_s: float) -> None:
        self._calls: ExpiringCache[K, tuple[float, asyncio.Task[V]]] = ExpiringCache(
            max_items=max_items, max_age_s=max_age_s
        )

    async def run(self, key: K, since: float, call: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """`since` is a moment of the monotonic clock."""
        found = self._calls.get(key)
        if found is None or found[0] < since:
            found = time.monotonic(), asyncio.create_task(call())
            found[1].add_done_callback(retrieve)
            self._calls.put(key, found)
        return await asyncio.shield(found[1])

    def has(self, key: K, since: float) -> bool:
        """Whether a call can be shared."""
        found = self._calls.get(key)
        return found is not None and found[0] >= since

    def drop(self, key: K) -> None:
        self._calls.drop(key)


def retrieve(task: asyncio.Task[Any]) -> None:
    """Marks the result as retrieved. Every caller may have been cancelled."""
    if not task.cancelled():
        task.exception()
