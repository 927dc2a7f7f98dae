"""Name servers that hang or fail for one cell, and the cells whose names they know."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rota.cells import addresses
from rota.cells import cell as cells
from rota.cells.cell import Cell
from rota.cells.connection import CellFailed
from tests.cells.fake_cell import FakeCell

SLOW = "slow.cell.test"


class Names:
    """A name server: it knows `SLOW`, and responds about it as a test says."""

    def __init__(self) -> None:
        self.responds = threading.Event()
        self.responds.set()
        self.error: OSError | None = None
        self.asked = 0
        self._resolve = socket.getaddrinfo

    def __call__(self, host: str, *arguments: Any, **options: Any) -> Any:
        if host == SLOW:
            self.asked += 1
            self.responds.wait(30)
            if self.error is not None:
                raise self.error
            host = "127.0.0.1"
        return self._resolve(host, *arguments, **options)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found)
    yield found
    found.responds.set()


@pytest.fixture
def slow(names: Names, cell: FakeCell) -> Iterator[Cell]:
    made = Cell("slow", f"http://{SLOW}:{cell.url.rpartition(':')[2]}")
    yield made
    made.close()


async def connect(cell: Cell) -> None:
    connection, used = await cell.acquire(new=True)
    assert not used
    cell.release(connection)


async def test_a_name_that_hangs_does_not_keep_the_threads_of_other_cells(
    names: Names, slow: Cell, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "CONNECT_S", 0.5)
    names.responds.clear()
    refused = await asyncio.gather(*[connect(slow) for _ in range(40)], return_exceptions=True)
    assert all(isinstance(each, CellFailed) for each in refused)
    assert names.asked == 1
    other = Cell("other", cell.url.replace("127.0.0.1", "localhost"))
    await connect(other)
    other.close()
    # What is looked up for the next request is the same look-up.
    with pytest.raises(CellFailed):
        await connect(slow)
    assert names.asked == 1


async def test_the_last_known_addresses_serve_while_the_name_server_hangs_or_fails(
    names: Names, slow: Cell, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "WITHIN_S", 0.05)
    await connect(slow)
    names.responds.clear()
    await connect(slow)
    names.error = socket.gaierror(socket.EAI_AGAIN, "Try later")
    names.responds.set()
    await connect(slow)
    assert cell.connections == 3


async def test_addresses_of_a_name_that_is_gone_or_too_old_are_not_used(
    names: Names, slow: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connect(slow)
    names.error = socket.gaierror(socket.EAI_NONAME, "No such name")
    with pytest.raises(CellFailed):
        await connect(slow)
    names.error = socket.gaierror(socket.EAI_AGAIN, "Try later")
    await connect(slow)
    monkeypatch.setattr(addresses, "KNOWN_S", 0.0)
    with pytest.raises(CellFailed):
        await connect(slow)
    names.error = None
    await connect(slow)


async def test_the_next_address_is_used_if_one_does_not_accept(
    slow: Cell, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_resolve", lambda *_: ["127.0.0.9", "127.0.0.1"])
    await connect(slow)
    monkeypatch.setattr(addresses, "_resolve", lambda *_: [])
    with pytest.raises(CellFailed):
        await connect(slow)
