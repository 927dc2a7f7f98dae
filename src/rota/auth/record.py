"""How auth tells what happened: a port, which the composition root fills with the event log."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from rota.platform.db import WriteConnection

# Transaction, account, type of the event, and what there is to say about it.
Record = Callable[[WriteConnection, UUID, str, Mapping[str, Any]], Awaitable[None]]
