"""The port through which auth records events. The composition passes the event journal."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rota.platform.db import AccountTransaction

# Transaction, type of the event, and its data.
Record = Callable[[AccountTransaction, str, Mapping[str, Any]], Awaitable[None]]
