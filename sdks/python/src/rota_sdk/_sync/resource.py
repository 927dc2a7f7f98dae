# Generated from rota_sdk/_async: do not edit.
"""What all resources have in common."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rota_sdk._model import Body, Model
from rota_sdk._operation import Operation
from rota_sdk._paging import Offsets, OnePage
from rota_sdk._requests import Request
from rota_sdk._sync.pages import Pages
from rota_sdk._sync.transport import Transport

M = TypeVar("M", bound=Model)
I = TypeVar("I")  # noqa: E741


class Resource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _call(
        self,
        operation: Operation[M],
        path: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        idempotency_key: str | None = None,
        *,
        is_repeatable: bool = True,
    ) -> M:
        request = Request.of(
            operation, path, query, body, idempotency_key, is_repeatable=is_repeatable
        )
        return self._transport.call(operation, request)

    def _end(
        self, operation: Operation[M], path: Mapping[str, str] | None = None, gone_status: int = 404
    ) -> None:
        """Ends what may be ended once. `gone_status` answers a request for what has ended."""
        request = replace(Request.of(operation, path), gone_status=gone_status)
        self._transport.end(operation, request)

    def _offset_list(
        self,
        operation: Operation[Any],
        items: Callable[[Any], list[I]],
        page_size: int | None,
        key: Callable[[I], Hashable] | None = None,
        path: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> Pages[I]:
        return Pages(
            self._transport, operation, items, lambda: Offsets(page_size, key), path, query
        )

    def _whole_list(
        self,
        operation: Operation[Any],
        items: Callable[[Any], list[I]],
        path: dict[str, str] | None = None,
    ) -> Pages[I]:
        return Pages(self._transport, operation, items, OnePage, path)
