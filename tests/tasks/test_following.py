"""A followed task and its events belong together, also if it changes while they are read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from rota.tasks.following import Following, Known


class Journal:
    """The events of one task. It completes when it is read for the first time."""

    is_closing = False

    def __init__(self) -> None:
        self.events = [SimpleNamespace(sequence=1, type="task.running")]

    @asynccontextmanager
    async def listening(self, account_id: UUID) -> AsyncIterator[Any]:
        woken = asyncio.Event()
        woken.removed_at = None  # type: ignore[attr-defined]
        yield woken

    async def read(self, account_id: UUID, after: int, task_id: UUID) -> list[Any]:
        return [event for event in self.events if event.sequence > after]

    async def get(self, caller: Any, task_id: UUID) -> Any:
        if len(self.events) == 1:
            self.events.append(SimpleNamespace(sequence=2, type="task.completed"))
        return SimpleNamespace(id=task_id, status="COMPLETED")


async def test_the_last_event_comes_with_the_task_that_it_ended() -> None:
    journal: Any = Journal()
    known: Any = Known(SimpleNamespace(id=uuid4(), status="RUNNING"), 0)  # type: ignore[arg-type]
    caller: Any = SimpleNamespace(account_id=uuid4())

    async def still_allowed(since: float | None) -> bool:
        return True

    changes = Following(journal, journal).changes(caller, known, still_allowed)
    change = await anext(changes)
    await changes.aclose()
    assert change.task.status == "COMPLETED"
    assert [event.type for event in change.events] == ["task.running", "task.completed"]
