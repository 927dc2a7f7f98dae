"""The Python SDK of Rota: `Rota` and `AsyncRota` are its clients.

Everything is imported when it is used first, because httpx and the models take a while.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rota_sdk._version import __version__

if TYPE_CHECKING:
    from rota_sdk import errors, models, webhooks
    from rota_sdk._async.client import AsyncRota
    from rota_sdk._async.pages import AsyncPages
    from rota_sdk._async.streams import AsyncEventStream
    from rota_sdk._events import TaskEvent, TextDelta, TextSnapshot
    from rota_sdk._paging import Page
    from rota_sdk._requests import UNSET, Unset
    from rota_sdk._results import TaskResult
    from rota_sdk._sync.client import Rota
    from rota_sdk._sync.pages import Pages
    from rota_sdk._sync.streams import EventStream
    from rota_sdk.errors import APIConnectionError, APIError, RotaError, StaleReviewError
    from rota_sdk.models import Event, Review, Task

_PLACES = {
    "AsyncRota": "_async.client",
    "AsyncPages": "_async.pages",
    "AsyncEventStream": "_async.streams",
    "Rota": "_sync.client",
    "Pages": "_sync.pages",
    "EventStream": "_sync.streams",
    "TaskEvent": "_events",
    "TextDelta": "_events",
    "TextSnapshot": "_events",
    "Page": "_paging",
    "UNSET": "_requests",
    "Unset": "_requests",
    "TaskResult": "_results",
    "APIConnectionError": "errors",
    "APIError": "errors",
    "RotaError": "errors",
    "StaleReviewError": "errors",
    "Event": "models",
    "Review": "models",
    "Task": "models",
}
_MODULES = ("errors", "models", "webhooks")

__all__ = [
    "UNSET",
    "APIConnectionError",
    "APIError",
    "AsyncEventStream",
    "AsyncPages",
    "AsyncRota",
    "Event",
    "EventStream",
    "Page",
    "Pages",
    "Review",
    "Rota",
    "RotaError",
    "StaleReviewError",
    "Task",
    "TaskEvent",
    "TaskResult",
    "TextDelta",
    "TextSnapshot",
    "Unset",
    "__version__",
    "errors",
    "models",
    "webhooks",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"rota_sdk.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'rota_sdk' has no attribute {name!r}")
    found = getattr(import_module(f"rota_sdk.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
