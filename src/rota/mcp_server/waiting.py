"""Waits for a task: until it ends, until a person must decide, or until the time is over.

A wait has a place among the account's event streams. It reads the events of the task after a
sequence number, so a client that was interrupted continues where it was and misses nothing.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from rota.auth.caller import Caller
from rota.auth.errors import CredentialRevoked
from rota.events.journal import Event
from rota.events.stream import BATCH, POLL_EVERY_S, StillAllowed, Streams
from rota.tasks.model import Task
from rota.tasks.service import Tasks
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
    def __init__(self, tasks: Tasks, streams: Streams) -> None:
        self._tasks = tasks
        self._streams = streams

    async def wait(
        self,
        caller: Caller,
        task_id: UUID | None,
        after: int | None,
        seconds: float,
        still_allowed: StillAllowed,
        report: Report,
    ) -> Waited:
        account_id = caller.account_id
        # Before the task is read, so that no event falls between the two.
        seen = await self._streams.last_sequence(account_id) if after is None else after
        task = await self._tasks.get(caller, task_id)
        # A review that the client knows of does not end the wait.
        news = after is None
        # A client that continues first gets the events that it has missed.
        if after is None and _is_over(task, news):
            return Waited(task, seen, timed_out=False)
        loop = asyncio.get_running_loop()
        ends_at, reported_at, reports = loop.time() + seconds, loop.time(), 0
        # The credential was checked when the request began.
        checked_at = loop.time()
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self._streams.place(account_id))
            woken = await stack.enter_async_context(self._streams.listening(account_id))
            while True:
                removed = woken.by_removal
                woken.clear()
                events = await self._streams.read(account_id, seen, task.id)
                if removed or loop.time() - checked_at >= POLL_EVERY_S:
                    checked_at = loop.time()
                    if not await still_allowed(True):
                        raise CredentialRevoked
                for event in events:
                    seen = event.sequence
                    news = news or event.data.get("status") == "WAITING_APPROVAL"
                    reports, reported_at = reports + 1, loop.time()
                    await report(reports, _words(event))
                if len(events) == BATCH:
                    continue
                if events:
                    task = await self._tasks.get(caller, task.id)
                if _is_over(task, news):
                    return Waited(task, seen, timed_out=False)
                if loop.time() >= ends_at or self._streams.is_closing:
                    return Waited(task, seen, timed_out=True)
                if loop.time() - reported_at >= REPORT_EVERY_S:
                    reports, reported_at = reports + 1, loop.time()
                    await report(reports, f"Still {task.status}")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(ends_at, loop.time() + POLL_EVERY_S)):
                        await woken.wait()


def _is_over(task: Task, news: bool) -> bool:
    return task.status in TERMINAL or (task.status == "WAITING_APPROVAL" and news)


def _words(event: Event) -> str:
    """What happened, without the words of others."""
    step = event.data.get("step")
    return f"{event.type} {step}" if isinstance(step, int) else event.type
