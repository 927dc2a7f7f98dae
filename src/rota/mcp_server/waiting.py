"""Waits for a task: until it ends, until a person must decide, or until the time is over.

A wait has a place among the account's event streams. It reads the events of the task after a
sequence number, so a client that was interrupted continues where it was and misses nothing.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from uuid import UUID

from rota.auth.caller import Caller
from rota.events.journal import Event
from rota.events.messages import StillAllowed
from rota.tasks.following import Following
from rota.tasks.model import Task
from rota.tasks.states import TERMINAL

# A client that resets its timeout with each report never gives up.
REPORT_EVERY_S = 10.0

Report = Callable[[int, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Waited:
    task: Task
    # The wait can be continued after this number.
    last_sequence: int
    # Whether the time was over first.
    timed_out: bool


class Waiting:
    def __init__(self, following: Following) -> None:
        self._following = following

    async def wait(
        self,
        caller: Caller,
        task_id: UUID | None,
        after: int | None,
        seconds: float,
        still_allowed: StillAllowed,
        report: Report,
    ) -> Waited:
        known = await self._following.known(caller, task_id)
        # A review that the client knows of does not end the wait.
        news = after is None
        if after is not None:
            # A client that continues first gets the events that it has missed.
            known = replace(known, sequence=after)
        elif _is_over(known.task, news):
            return Waited(known.task, known.sequence, timed_out=False)
        loop = asyncio.get_running_loop()
        task, seen, reports, reported_at = known.task, known.sequence, 0, loop.time()
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self._following.place(caller))
            changes = await stack.enter_async_context(
                contextlib.aclosing(self._following.changes(caller, known, still_allowed, seconds))
            )
            async for change in changes:
                task = change.task
                for event in change.events:
                    seen = event.sequence
                    news = news or event.data.get("status") == "WAITING_APPROVAL"
                    reports, reported_at = reports + 1, loop.time()
                    await report(reports, _words(event))
                if _is_over(task, news) and not change.more:
                    return Waited(task, seen, timed_out=False)
                if loop.time() - reported_at >= REPORT_EVERY_S:
                    reports, reported_at = reports + 1, loop.time()
                    await report(reports, f"Still {task.status}")
        return Waited(task, seen, timed_out=True)


def _is_over(task: Task, news: bool) -> bool:
    return task.status in TERMINAL or (task.status == "WAITING_APPROVAL" and news)


def _words(event: Event) -> str:
    """What happened, without the words of others."""
    step = event.data.get("step")
    return f"{event.type} {step}" if isinstance(step, int) else event.type
