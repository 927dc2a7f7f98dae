"""Slices whose calls take long share one look at their account, and each hears of its own loss."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from rota.events.fanout import Woken
from rota.platform.ids import new_uuid, to_wire
from rota.runs import lost_calls
from rota.runs.contracts import RunInput
from rota.runs.lost_calls import Watching


class Account:
    """An account whose runs can be lost, and whose database can be down."""

    def __init__(self) -> None:
        self.id = new_uuid()
        self.lost_runs: set[RunInput] = set()
        self.is_down = False
        self.looks: list[int] = []
        self.listeners: list[Woken] = []

    def run(self) -> RunInput:
        return RunInput(to_wire("acct", self.id), to_wire("task", new_uuid()), 1, fence=1)

    def lose(self, run_input: RunInput) -> None:
        self.lost_runs.add(run_input)
        for listener in self.listeners:
            listener.set()

    @asynccontextmanager
    async def listening(self, account_id: UUID) -> AsyncIterator[Woken]:
        assert account_id == self.id
        self.listeners.append(Woken())
        try:
            yield self.listeners[-1]
        finally:
            del self.listeners[-1]

    async def lost(self, account_id: UUID, run_inputs: set[RunInput]) -> set[RunInput]:
        assert account_id == self.id
        self.looks.append(len(run_inputs))
        if self.is_down:
            raise ConnectionError
        return self.lost_runs & run_inputs


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(lost_calls, "UNWATCHED_S", 0)
    monkeypatch.setattr(lost_calls, "WATCH_EVERY_S", 0.05)
    return Account()


def started(watches: Watching, runs: list[RunInput]) -> list[tuple[Any, asyncio.Task[bool]]]:
    """A call of each run that does not end, and the wait for it."""
    calls = [asyncio.get_running_loop().create_future() for _ in runs]
    return [
        (call, asyncio.create_task(watches.finishes_before_loss(call, run)))
        for call, run in zip(calls, runs, strict=True)
    ]


async def test_one_look_serves_all_runs_of_an_account(account: Account) -> None:
    watches: Any = Watching(account, account)  # type: ignore[arg-type]
    runs = [account.run() for _ in range(20)]
    waits = started(watches, runs)
    await asyncio.sleep(0.3)
    # The first look may come before some of them, and then there is a second.
    assert 1 <= len(account.looks) <= 2
    assert account.looks[-1] == 20
    account.looks.clear()
    account.lose(runs[3])
    async with asyncio.timeout(2):
        assert not await waits[3][1]
    assert len(account.looks) == 1
    assert not any(wait.done() for number, (_, wait) in enumerate(waits) if number != 3)
    for call, wait in waits[:3] + waits[4:]:
        call.set_result(None)
        assert await wait
    # Nobody listens any more.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (watches._accounts, account.listeners) == ({}, [])


async def test_a_run_that_was_lost_before_it_was_watched_is_found(account: Account) -> None:
    watches: Any = Watching(account, account)  # type: ignore[arg-type]
    first, second = account.run(), account.run()
    (call, wait), *_ = started(watches, [first])
    await asyncio.sleep(0.3)
    account.lost_runs.add(second)
    ((_, other),) = started(watches, [second])
    async with asyncio.timeout(2):
        assert not await other
    call.set_result(None)
    assert await wait


async def test_a_database_that_does_not_answer_is_asked_again(account: Account) -> None:
    watches: Any = Watching(account, account)  # type: ignore[arg-type]
    account.is_down = True
    run = account.run()
    account.lost_runs.add(run)
    ((_, wait),) = started(watches, [run])
    await asyncio.sleep(0.3)
    assert not wait.done()
    assert len(account.looks) >= 2
    account.is_down = False
    async with asyncio.timeout(2):
        assert not await wait
