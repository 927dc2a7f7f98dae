"""Requests of the router itself to a cell."""

import asyncio
from dataclasses import dataclass

from starlette.types import Message, Send

from rota.cells.cell import Cell
from rota.cells.connection import CellFailed
from rota.cells.exchange import RESPONSE_HEADERS, Request, exchange

MAX_BYTES = 1024 * 1024
# Of a cell that works. One that does not answer must not stop what the others could do.
ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a cell has answered. The status is 0 if it has not."""

    cell: str
    status: int = 0
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    @property
    def is_missing(self) -> bool:
        return self.status == 0 or self.status >= 500

    async def relay(self, send: Send) -> None:
        headers = [each for each in self.headers if each[0] not in RESPONSE_HEADERS]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


async def fetch(cell: Cell, path: str) -> tuple[int, bytes]:
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", cell.name.encode())],
        "client": None,
    }
    request = Request(scope, _nothing)
    async with exchange(cell, request, within_s=ANSWER_S) as found:
        return found.status, await found.read(MAX_BYTES)


async def ask(
    cell: Cell, request: Request, *extra: tuple[bytes, bytes], within_s: float = ANSWER_S
) -> Answer:
    """The answer to a request whose body is known. Nobody watches the client meanwhile."""
    try:
        async with exchange(cell, request.unwatched(_nothing), *extra, within_s=within_s) as found:
            body = await found.read(MAX_BYTES)
            answer = Answer(cell.name, found.status, tuple(found.headers), body)
    except CellFailed as error:
        if error.reason != "busy":
            cell.suspect()
        return Answer(cell.name)
    if answer.is_missing:
        cell.suspect()
    return answer


async def _nothing() -> Message:
    """No client can go away."""
    await asyncio.Event().wait()
    raise AssertionError
