"""The public keys of all cells, as one list: who verifies a webhook, a receipt or a session token
does not know which cell has signed it."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from rota.cells.cell import Cell
from rota.cells.connection import CellFailed
from rota.cells.fetching import fetch
from rota.platform import json
from rota.platform.errors import Unavailable
from rota.platform.http.responses import json_response

KEY_PATHS = (
    "/.well-known/jwks.json",
    "/.well-known/webhook-keys.json",
    "/.well-known/audit-keys.json",
)
# How long a list is used.
MAX_AGE_S = 1.0
TIMEOUT_S = 2.0


class PublishedKeys:
    def __init__(self, cells: Mapping[str, Cell]) -> None:
        self._cells = cells
        # What each cell has published last. It stays valid while the cell is down.
        self._lists: dict[tuple[str, str], list[Any]] = {}
        self._asked: dict[str, float] = {}
        self._locks = {path: asyncio.Lock() for path in KEY_PATHS}

    async def response(self, path: str) -> Response:
        async with self._locks[path]:
            if time.monotonic() - self._asked.get(path, float("-inf")) >= MAX_AGE_S:
                await asyncio.gather(*[self._ask(cell, path) for cell in self._cells.values()])
                self._asked[path] = time.monotonic()
        keys: list[Any] = []
        for name in self._cells:
            keys += (key for key in self._lists.get((name, path), ()) if key not in keys)
        if not keys:
            raise Unavailable("No cell is available. Try again.")
        # After a restart of the router, the keys of a cell that is down are not known. Receivers
        # must ask again then.
        complete = all((name, path) in self._lists for name in self._cells)
        headers = None if complete else {"Cache-Control": "no-store"}
        return json_response(200, {"keys": keys}, headers)

    async def _ask(self, cell: Cell, path: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, body = await fetch(cell, path)
            found = json.loads(body)
        except (CellFailed, TimeoutError, json.InvalidJson):
            return
        if status == 200 and isinstance(found, dict) and isinstance(found.get("keys"), list):
            self._lists[cell.name, path] = found["keys"]
