"""Follows a task in the event journal, for programs that wait for it through MCP or A2A.

What is known of a task is its state at one sequence number. The events after it come in order and
without gaps, so every process can continue what another one began.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from rota.auth.authenticator import CACHE_S
from rota.auth.caller import Caller
from rota.auth.errors import CredentialRevoked
from rota.events.journal import Event
from rota.events.messages import POLL_EVERY_S, StillAllowed
from rota.events.stream import Streams
from rota.platform.errors import RateLimited
from rota.tasks.model import Task
from rota.tasks.service import Tasks

HasLeft = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Known:
    """A task, and a sequence number. All later changes have a higher one."""

    task: Task
    sequence: int


@dataclass(frozen=True, slots=True)
class Change:
    """New events of a task, and the task after them. If nothing has happened for a while, there
    are none."""

    events: list[Event]
    task: Task
    # Whether more events are waiting to be read, or may be.
    more: bool


class Following:
    def __init__(self, tasks: Tasks, streams: Streams) -> None:
        self._tasks = tasks
        self._streams = streams

    def place(self, caller: Caller) -> contextlib.AbstractContextManager[None]:
        """A place among the account's open event streams."""
        return self._streams.place(caller.account_id)

    async def known(self, caller: Caller, task_id: UUID | None) -> Known:
        # Before the task is read, so that no event falls between the two.
        sequence = await self._streams.last_sequence(caller.account_id)
        return Known(await self._tasks.get(caller, task_id), sequence)

    async def changes(
        self,
        caller: Caller,
        known: Known,
        still_allowed: StillAllowed,
        seconds: float | None = None,
        has_left: HasLeft | None = None,
    ) -> AsyncGenerator[Change]:
        """What happens to the task, until this time is over, the client has left or the service
        stops."""
        ends_at = math.inf if seconds is None else time.monotonic() + seconds
        # The credential was checked when the request began, with a caller that can be this old.
        checked_at = time.monotonic() - CACHE_S
        account_id, task, seen = caller.account_id, known.task, known.sequence
        async with self._streams.listening(account_id) as woken:
            while True:
                events_at, removed_at = woken.take()
                # Those that the same event has woken share a read.
                since = events_at or time.monotonic()
                is_busy = False
                try:
                    change, upto = await self._next(caller, task, seen, since)
                    # After the read, which can take long, so that the client sees nothing after its
                    # own removal.
                    removed = removed_at or woken.removed_at
                    if removed or time.monotonic() - checked_at >= POLL_EVERY_S:
                        checked_at = time.monotonic()
                        if not await still_allowed(checked_at):
                            raise CredentialRevoked
                except RateLimited:
                    # The account uses its whole share of the database. The client gets nothing new
                    # until the next poll, which checks it. There may be more events.
                    is_busy, checked_at = True, -math.inf
                    change, upto = Change([], task, more=True), seen
                task, seen = change.task, upto
                yield change
                if change.more and not is_busy:
                    continue
                if self._streams.is_closing or time.monotonic() >= ends_at:
                    return
                if has_left is not None and await has_left():
                    return
                wake_at = min(ends_at, time.monotonic() + POLL_EVERY_S)
                if is_busy:
                    await asyncio.sleep(wake_at - time.monotonic())
                    continue
                await woken.wait_until(wake_at)

    async def _next(
        self, caller: Caller, task: Task, seen: int, since: float
    ) -> tuple[Change, int]:
        """The events after number `seen`, the task after them, and the number up to which all
        events are known."""
        account_id = caller.account_id
        batch = await self._streams.read(account_id, seen, task.id, since)
        events = batch.events
        while batch.events:
            task = await self._tasks.get(caller, task.id)
            if batch.has_more:
                break
            # It may have changed since the events were read. Then they come along, or a wait for
            # the end would miss the last one.
            batch = await self._streams.read(account_id, batch.upto, task.id, time.monotonic())
            events = [*events, *batch.events]
        return Change(events, task, batch.has_more), batch.upto
