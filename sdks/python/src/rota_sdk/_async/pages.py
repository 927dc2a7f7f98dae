"""Lists that read their pages when they are needed."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from rota_sdk._async.transport import AsyncTransport
from rota_sdk._operation import Operation
from rota_sdk._paging import Cursor, Page, total_of
from rota_sdk._requests import Request

T = TypeVar("T")


class AsyncPages(Generic[T]):
    """The items of a list. Use it in `async for`, as often as you like."""

    def __init__(
        self,
        transport: AsyncTransport,
        operation: Operation[Any],
        items: Callable[[Any], list[T]],
        cursor: Callable[[], Cursor[T]],
        path: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._operation = operation
        self._items = items
        self._cursor = cursor
        self._path = path
        self._query = query or {}

    async def __aiter__(self) -> AsyncIterator[T]:
        cursor = self._cursor()
        while not cursor.is_done:
            page = await self._read(cursor)
            for item in cursor.take(page):
                yield item

    async def first_page(self) -> Page[T]:
        """The first page, and how many items there are in total."""
        return await self._read(self._cursor())

    async def page(self, number: int) -> Page[T]:
        """One page of a list with `page_size`. The first is 1. A page after the last is empty."""
        if number < 1:
            raise ValueError("The first page is 1.")
        cursor = self._cursor()
        cursor.go_to(number)
        return await self._read(cursor)

    async def _read(self, cursor: Cursor[T]) -> Page[T]:
        query = {**self._query, **cursor.query()}
        request = Request.of(self._operation, self._path, query)
        response = await self._transport.call(self._operation, request)
        items = self._items(response)
        total = total_of(response)
        return Page(items, len(items) if total is None else total)
