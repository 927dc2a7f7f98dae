"""Waits for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def seconds_until(
    condition: Callable[[], Awaitable[bool]], *, deadline_s: float = 60
) -> float:
    """Waits until the condition is true. Returns how long it took."""
    started = time.monotonic()
    async with asyncio.timeout(deadline_s):
        while not await condition():
            await asyncio.sleep(0.01)
    return time.monotonic() - started
