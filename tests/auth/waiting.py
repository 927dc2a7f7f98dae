"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def seconds_until(
    condition: Callable[[], Awaitable[bool]], *, deadline_s: float = 10
) -> float:
    """How long it took until the condition held."""
    began = time.monotonic()
    async with asyncio.timeout(deadline_s):
        while not await condition():
            await asyncio.sleep(0.01)
    return time.monotonic() - began
