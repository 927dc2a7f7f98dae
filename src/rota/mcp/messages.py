"""Reads the messages of tool servers, in place of the MCP SDK's parser.

Parsing keeps the event loop busy. So a message with too many values is refused before that, and
what parsing costs is counted for the account. The text is checked as the SDK has decoded it, from a
body or from an event, so nothing in between can hide values.

The SDK tries each kind of message on the text, which takes several times as long as parsing it once
and trying each kind on its objects. When it validates a result, it also makes a copy that it drops.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any

import mcp_types as types
from mcp.client import streamable_http
from mcp_types import methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter
from pydantic_core import from_json

from rota.platform import json
from rota.platform.egress import ResponseRejected

# JSON values in one message. Parsing this many takes about 5 ms.
MAX_VALUES = 50_000

Spend = Callable[[float], None]
# Called with the processor time that messages take. Set for the tasks of a session.
SPEND: ContextVar[Spend] = ContextVar("SPEND", default=lambda cpu_s: None)


def check_values(message: bytes) -> None:
    if json.has_too_many_values(message, MAX_VALUES):
        raise ResponseRejected(f"The response has more than {MAX_VALUES} JSON values.")


@contextmanager
def measured(spend: Spend) -> Iterator[None]:
    started = time.thread_time()
    try:
        yield
    finally:
        spend(time.thread_time() - started)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Many new objects would start the garbage collector several times. It would find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Messages:
    def __init__(self) -> None:
        self._adapter: Any = types.jsonrpc_message_adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    def validate_json(self, data: str | bytes, **options: Any) -> Any:
        with measured(SPEND.get()):
            check_values(data.encode() if isinstance(data, str) else data)
            try:
                with _without_collections():
                    message = from_json(data)
            except ValueError:
                # The SDK expects its own error.
                return self._adapter.validate_json(data, **options)
            return self._adapter.validate_python(message, **options)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _validate_result(
    method: str,
    version: str,
    data: Mapping[str, Any],
    *,
    surface: Mapping[tuple[str, str], Any] = methods.SERVER_RESULTS,
) -> None:
    if version not in KNOWN_PROTOCOL_VERSIONS:
        raise ValueError(f"unknown protocol version {version!r}")
    _adapter(surface[method, version]).validate_python(data, by_name=False)


def _replace(module: ModuleType, name: str, value: Any) -> None:
    """Fails if the SDK has renamed what is replaced. Otherwise its own parser would stay in use."""
    if not hasattr(module, name):
        raise ImportError(f"The MCP SDK has no {module.__name__}.{name}.")
    setattr(module, name, value)


_messages = _Messages()
# Both transports of the client: HTTP and the older SSE.
_replace(streamable_http, "jsonrpc_message_adapter", _messages)
_replace(types, "jsonrpc_message_adapter", _messages)
_replace(methods, "validate_server_result", _validate_result)
