"""What the loops of a process need: to wait until they are woken, and that their end is noticed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


async def is_set(event: asyncio.Event, within_s: float) -> bool:
    """Waits until the event is set, at most so long. Whether it was set."""
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


class Loops:
    """Loops that run as long as their process does.

    If one of them ends before that, the process must end too, so that it is started again: `stop`
    is set, and `failed` names the loop.
    """

    def __init__(self, stop: asyncio.Event) -> None:
        self.failed: str | None = None
        self._stop = stop
        self._running: list[asyncio.Task[None]] = []
        self._are_ending = False

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.create_task(work, name=name)
        loop.add_done_callback(self._ended)
        self._running.append(loop)

    async def end(self, within_s: float) -> None:
        """Cancels the loops, and waits for them at most so long."""
        self._are_ending = True
        for loop in self._running:
            loop.cancel()
        await asyncio.wait(self._running, timeout=within_s)

    def _ended(self, loop: asyncio.Task[None]) -> None:
        error = None if loop.cancelled() else loop.exception()
        if self._are_ending and error is None:
            return
        self.failed = loop.get_name()
        log.error("background_failed", loop=self.failed, error=repr(error), exc_info=error)
        self._stop.set()
