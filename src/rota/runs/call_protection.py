"""Protects a call: with heartbeats for Temporal, and from cancellation and database outages."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from temporalio import activity

from rota.platform.db import DATABASE_ERRORS, REJECTED_VALUES

log = structlog.get_logger()

T = TypeVar("T")

# How long a call of a cancelled task can keep a worker from stopping.
STOPPING_S = 10
# About ten minutes, which is less than a call's timeout.
DATABASE_ATTEMPTS = 120


class Pulse:
    """Notices that this process was paused for so long that Temporal may count it as dead."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._last_s = time.monotonic()
        self._stopped = False

    def beat(self) -> None:
        self._stopped = self.stopped
        self._last_s = time.monotonic()

    @property
    def stopped(self) -> bool:
        return self._stopped or time.monotonic() - self._last_s > self._limit_s


@contextlib.asynccontextmanager
async def heartbeats() -> AsyncIterator[Pulse]:
    """Sends heartbeats to Temporal during a call."""
    timeout = activity.info().heartbeat_timeout or timedelta(seconds=15)
    timeout_s = timeout.total_seconds()
    # Temporal receives a heartbeat every third of the timeout.
    pulse = Pulse(timeout_s * 0.4)

    async def beat() -> None:
        while True:
            for _ in range(4):
                # Waits first: most calls end before a heartbeat is due.
                await asyncio.sleep(timeout_s / 12)
                pulse.beat()
            activity.heartbeat()

    beating = asyncio.create_task(beat())
    try:
        yield pulse
    finally:
        beating.cancel()


async def finish_despite_cancellation(work: Awaitable[T]) -> T:
    """Lets a call finish when its task is cancelled: the provider bills it either way.

    Only the end of the worker aborts the call.
    """
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait({working})
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is None or details.worker_shutdown or not await _finish_cancelled(working):
            working.cancel()
            raise
    return working.result()


async def _finish_cancelled(working: "asyncio.Future[Any]") -> bool:
    """Waits for the call. Returns False if the worker stops before the call ends."""
    log.info("cancelled_call_continues", run=activity.info().workflow_id)
    stopping: asyncio.Future[Any] = asyncio.ensure_future(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working}, timeout=STOPPING_S)
    finally:
        stopping.cancel()
    return working.done()


async def retry_database(work: Callable[[], Awaitable[T]]) -> T:
    """Repeats `work` while the database is unavailable, for several minutes.

    An outage does not count as a failure of the model or the tool, and a call that was made is
    stored. Cancellation takes effect only after `work` is done, for the same reason.
    """
    working = asyncio.ensure_future(_attempts(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await working
        raise


async def _attempts(work: Callable[[], Awaitable[T]]) -> T:
    for attempt in range(DATABASE_ATTEMPTS):
        try:
            return await work()
        except REJECTED_VALUES:
            raise
        except DATABASE_ERRORS as error:
            if attempt == 0:
                log.warning("database_unavailable", error=repr(error))
            await asyncio.sleep(min(5, 0.1 * 2**attempt))
    return await work()
