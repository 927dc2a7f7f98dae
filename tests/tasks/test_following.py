"""A followed task and its events belong together, also if it changes while they are read."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from rota.auth.authenticator import CACHE_S
from rota.auth.errors import CredentialRevoked
from rota.events.fanout import Woken
from rota.events.messages import StillAllowed
from rota.events.reading import Batch
from rota.platform.errors import RateLimited
from rota.tasks import following
from rota.tasks.following import Change, Following, Known


class Journal:
    """The events of one task. It completes when it is read for the first time."""

    is_closing = False

    def __init__(self) -> None:
        self.events = [SimpleNamespace(sequence=1, type="task.running")]

    @asynccontextmanager
    async def listening(self, account_id: UUID) -> AsyncIterator[Any]:
        self.woken = Woken()
        yield self.woken

    async def read(self, account_id: UUID, after: int, task_id: UUID, since: float) -> Batch:
        events: list[Any] = [event for event in self.events if event.sequence > after]
        return Batch(after, len(self.events), events, has_more=False, read_at=since)

    async def get(self, caller: Any, task_id: UUID) -> Any:
        if len(self.events) == 1:
            self.events.append(SimpleNamespace(sequence=2, type="task.completed"))
        return SimpleNamespace(id=task_id, status="COMPLETED")


def changes_of(
    journal: Any, still_allowed: StillAllowed, seconds: float | None = None
) -> AsyncGenerator[Change]:
    """What happens to a running task, none of whose events are known."""
    known: Any = Known(SimpleNamespace(id=uuid4(), status="RUNNING"), 0)  # type: ignore[arg-type]
    caller: Any = SimpleNamespace(account_id=uuid4())
    return Following(journal, journal).changes(caller, known, still_allowed, seconds)


async def test_the_last_event_comes_with_the_task_that_it_ended() -> None:
    journal: Any = Journal()

    async def still_allowed(since: float | None) -> bool:
        return True

    changes = changes_of(journal, still_allowed)
    change = await anext(changes)
    await changes.aclose()
    assert change.task.status == "COMPLETED"
    assert [event.type for event in change.events] == ["task.running", "task.completed"]


class Busy(Journal):
    """Its account uses its whole share of the database while `refuses` names what is asked."""

    refuses = ""

    async def read(self, account_id: UUID, after: int, task_id: UUID, since: float) -> Batch:
        self._check("read")
        return await super().read(account_id, after, task_id, since)

    async def get(self, caller: Any, task_id: UUID) -> Any:
        self._check("get")
        return await super().get(caller, task_id)

    async def still_allowed(self, since: float | None) -> bool:
        self._check("still_allowed")
        return True

    def _check(self, name: str) -> None:
        if self.refuses == name:
            raise RateLimited("Busy.")


@pytest.mark.parametrize("refused", ["read", "get", "still_allowed"])
async def test_a_busy_database_delays_the_events_and_loses_none(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_EVERY_S", 0.01)
    journal: Any = Busy()
    journal.refuses = refused
    changes = changes_of(journal, journal.still_allowed)
    for _ in range(3):
        change = await anext(changes)
        # There may be more, so a client that waits for the end does not stop here.
        assert (change.events, change.task.status, change.more) == ([], "RUNNING", True)
    journal.refuses = ""
    change = await anext(changes)
    await changes.aclose()
    assert change.task.status == "COMPLETED"
    assert [event.type for event in change.events] == ["task.running", "task.completed"]


async def test_a_client_is_checked_first_when_the_database_is_no_longer_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The next check is due much later, but a read after a busy moment is checked in any case.
    monkeypatch.setattr(following, "POLL_EVERY_S", 3_600)
    journal: Any = Busy()
    journal.refuses = "read"

    async def still_allowed(since: float | None) -> bool:
        return False

    changes = changes_of(journal, still_allowed, seconds=1)
    await anext(changes)
    journal.refuses = ""
    with pytest.raises(CredentialRevoked):
        await anext(changes)


class Slow(Journal):
    """Its reads take longer than a check of the client is valid."""

    def __init__(self, removes: bool) -> None:
        super().__init__()
        self._removes = removes

    async def read(self, account_id: UUID, after: int, task_id: UUID, since: float) -> Batch:
        if self._removes:
            self.woken.by_removal()
        else:
            await asyncio.sleep(0.1)
        return await super().read(account_id, after, task_id, since)


@pytest.mark.parametrize("removes", [False, True])
async def test_a_client_that_lost_its_rights_during_the_read_gets_nothing(
    removes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beyond the age of the caller at the beginning.
    monkeypatch.setattr(following, "POLL_EVERY_S", 3_600 if removes else CACHE_S + 0.05)
    journal: Any = Slow(removes)

    async def still_allowed(since: float | None) -> bool:
        return False

    changes = changes_of(journal, still_allowed)
    with pytest.raises(CredentialRevoked):
        await anext(changes)
