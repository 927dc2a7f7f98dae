"""Notices when the machine itself is slow.

    python -m tests.load.stalls

The host of a virtual machine can slow down all of its processes for 50 to 100 ms, and the kernel
does not know. The program repeats the same small piece of work and reads how much processor time it
took. That does not grow while other processes use the processor, but it grows several times while
the host is slow. For each time, it prints when it began and ended, in nanoseconds, and 1 if it was
slow.

What begins at such a moment says nothing about the service, so it is left out on both sides of a
comparison. When it ends does not matter: otherwise slow responses would be left out more often.
"""

import asyncio
import sys
import time
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from statistics import median

# One piece of work takes about 0.2 ms, so the program uses a twentieth of a processor.
NUMBERS = 2_500
EVERY_S = 0.004
# Compared with the median of the latest minute or so: a machine can become slower for longer, and
# then that is how fast it is.
FIRST, LATEST = 250, 12_000
SLOW = 2.0
# What begins shortly before is still in progress then. The end is gradual, and a queue remains.
BEFORE_S, AFTER_S = 0.03, 0.06


def _work() -> int:
    """The processor time of one piece of work."""
    started = time.thread_time_ns()
    sum(number * number for number in range(NUMBERS))
    return time.thread_time_ns() - started


def watch() -> None:
    latest: deque[int] = deque(maxlen=LATEST)
    while len(latest) < FIRST:
        time.sleep(EVERY_S)
        latest.append(_work())
    for number in count():
        if number % FIRST == 0:
            usual = median(latest)
        time.sleep(EVERY_S)
        began = time.perf_counter_ns()
        latest.append(_work())
        is_slow = latest[-1] > SLOW * usual
        print(began, time.perf_counter_ns(), int(is_slow), flush=True)


class Stalls:
    """The moments at which the machine was slow, in seconds of `time.perf_counter`."""

    def __init__(self) -> None:
        self._began: list[float] = []
        self._ended: list[float] = []
        self._seen_until = 0.0
        self._changed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def watched(cls) -> AsyncIterator["Stalls"]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.load.stalls", stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        stalls = cls()
        reading = asyncio.create_task(stalls.read(process.stdout))
        try:
            yield stalls
        finally:
            reading.cancel()
            process.kill()
            await process.wait()

    async def read(self, lines: asyncio.StreamReader) -> None:
        async for line in lines:
            began, ended, is_slow = map(int, line.split())
            self.add(began / 1e9, ended / 1e9, is_slow=bool(is_slow))

    def add(self, began: float, ended: float, *, is_slow: bool) -> None:
        self._seen_until = ended
        self._changed.set()
        if not is_slow:
            return
        began, ended = began - BEFORE_S, ended + AFTER_S
        if self._ended and began <= self._ended[-1]:
            self._ended[-1] = ended
        else:
            self._began.append(began)
            self._ended.append(ended)

    async def seen(self, moment: float) -> None:
        """Waits until it is known whether the machine was slow at this moment."""
        async with asyncio.timeout(60):
            while self._seen_until < moment:
                self._changed.clear()
                await self._changed.wait()

    def covers(self, moment: float) -> bool:
        at = bisect_left(self._ended, moment)
        return at < len(self._began) and self._began[at] <= moment


if __name__ == "__main__":
    watch()
