"""Finds the cell that has the account of an identity. No table says it: the cells know, and all of
them are asked at once."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rota.cells.cell import Cell
from rota.cells.exchange import Request
from rota.cells.fetching import Answer, ask
from rota.platform.cell import FIND, ROUTING_HEADER

MISDIRECTED = 421


@dataclass(slots=True)
class Found:
    # The cell that knows the identity.
    home: str | None = None
    # Cells that did not answer: they may know it.
    missing: list[Answer] = field(default_factory=list)
    # What a cell did not accept: it has not looked.
    refusal: Answer | None = None

    @property
    def is_new(self) -> bool:
        """Whether every cell has said that it does not know the identity."""
        return self.home is None and self.refusal is None and not self.missing


def routing(question: str, cells: Mapping[str, Cell]) -> tuple[bytes, bytes]:
    return ROUTING_HEADER.encode(), f"{question} {','.join(cells)}".encode()


async def find(
    cells: Mapping[str, Cell], order: Sequence[str], request: Request, first: str | None = None
) -> Found:
    """If several cells know the identity, which happens only to accounts from before they were
    cells of one service, the first in the order counts. But nobody waits for a cell that failed a
    moment ago if another one knows the identity. `first` is a cell that was chosen."""
    question = routing(FIND, cells)
    asked = {name: asyncio.create_task(ask(cells[name], request, question)) for name in order}
    found = Found()
    try:
        for name in sorted(order, key=lambda name: (name != first, cells[name].is_suspect)):
            answer = await asked[name]
            if answer.is_missing:
                found.missing.append(answer)
            elif answer.status < 300:
                found.home = name
                break
            elif answer.status != MISDIRECTED:
                found.refusal = found.refusal or answer
    finally:
        for task in asked.values():
            task.cancel()
    return found
