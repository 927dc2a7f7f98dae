"""Working on while others are away: signs of life for the engine, waiting for the database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import structlog
from temporalio import activity

from rota.platform.db import DATABASE_ERRORS

log = structlog.get_logger()

T = TypeVar("T")

# Some ten minutes, within the time that a call may take.
DATABASE_ATTEMPTS = 120


@contextlib.asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """Tells the engine that this worker is alive for as long as the call takes."""
    timeout = activity.info().heartbeat_timeout or timedelta(seconds=15)

    async def beat() -> None:
        while True:
            # The engine knows that it has just begun; most calls end before the first is due.
            await asyncio.sleep(timeout.total_seconds() / 3)
            activity.heartbeat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


async def retry_database(work: Callable[[], Awaitable[T]]) -> T:
    """Does what needs the database, also when that is away for minutes.

    What has been paid for is written down, and an outage does not count as a
    failure of the model or the tool. Being cancelled does not stop it either:
    the call was made all the same.
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
        except DATABASE_ERRORS as error:
            if attempt == 0:
                log.warning("waiting for the database", reason=repr(error))
            await asyncio.sleep(min(5, 0.1 * 2**attempt))
    return await work()
