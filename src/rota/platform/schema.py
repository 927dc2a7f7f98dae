"""Checks values against JSON Schemas of others, outside of this process.

Tool servers have schemas for the arguments of their tools, and tasks for their outputs.

A hostile schema can use any amount of time and memory. So it is read and checked in another
process, which ends when it uses too much. An account checks one value at a time, so it cannot
occupy all processes. An account with slow checks gets processes of low priority, which only such
accounts use, and waits after each slow check.
"""

import asyncio
import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from prometheus_client import Counter, Histogram

from rota.platform import json
from rota.platform.cache import ExpiringCache
from rota.platform.errors import RateLimited, Unavailable
from rota.platform.pace import Pace

log = structlog.get_logger()

CHECKS = Counter(
    "rota_schema_checks_total",
    "Checks of values against schemas of tool servers and tasks, by outcome.",
    ["outcome"],
)
for _outcome in ("ok", "invalid", "unusable", "killed", "refused"):
    # From the start, so that the first one is an increase.
    CHECKS.labels(_outcome)
SECONDS = Histogram(
    "rota_schema_check_seconds",
    "Time of a check, with the time that it waited for a process.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 10),
)

# They start when they are needed.
MAX_PROCESSES = 4
MAX_SLOW_PROCESSES = 2
# A check normally takes less than a millisecond. One that takes longer than this continues with a
# low priority, so that it does not slow down the service. If it has used as much processor time,
# the account is slow for a minute.
SLOW_S = 0.05
REMEMBER_SLOW_S = 60.0
# Of one processor, for the slow checks of an account. Even with a low priority, they take memory
# bandwidth and caches from the service.
SLOW_SHARE = 0.2
LOW_PRIORITY = 19
# The outcomes of slow checks, of all accounts, and for how long. Each has at most 20 problems.
MAX_REMEMBERED = 2_000
REMEMBER_FOUND_S = 600.0
# The process ends itself after this much processor time: see schema_process.py. The other limit is
# for a machine that is too busy to give it that second.
MAX_CPU_S = 1.0
MAX_CHECK_S = 5.0
# The same for processes of low priority, which get little of a busy machine.
MAX_SLOW_CHECK_S = 20.0
START_S = 20.0
# The checks of one account that wait, and how long each of them waits.
MAX_WAITING = 256
MAX_WAIT_S = 10.0

_PROGRAM = Path(__file__).with_name("schema_process.py")
_LENGTHS, _LENGTH = Struct(">II"), Struct(">I")

_TOO_MUCH = "checking it takes too much time or memory"
_TOO_SLOW = (
    "Checks of this account's values against their schemas take too much processor time. "
    "Try again later, or simplify the schemas."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a value, at most 20 problems. None if it matches the schema."""

    problems: list[str]
    # False if the schema itself cannot be used. The problem says why.
    usable: bool = True


class SchemaChecks:
    def __init__(self) -> None:
        self._fast = _Processes(MAX_PROCESSES)
        self._slow = _Processes(MAX_SLOW_PROCESSES, slow=True)
        self._accounts: dict[UUID, _Account] = {}
        self._slow_accounts: ExpiringCache[UUID, bool] = ExpiringCache(
            max_items=10_000, max_age_s=REMEMBER_SLOW_S
        )
        self._pace = Pace("schema_checks", _TOO_SLOW, share=SLOW_SHARE, wait_s=MAX_WAIT_S)
        # What slow checks have found, for those who check the same again: a run whose next check is
        # refused continues from here.
        self._found: ExpiringCache[bytes, tuple[str, list[str]]] = ExpiringCache(
            max_items=MAX_REMEMBERED, max_age_s=REMEMBER_FOUND_S
        )
        self._has_found: ExpiringCache[UUID, bool] = ExpiringCache(
            max_items=10_000, max_age_s=REMEMBER_FOUND_S
        )

    async def check(
        self, account_id: UUID, schema: Any, value: Any, *, named: str = "the tool's schema"
    ) -> Verdict:
        """Never inside a transaction: a check can take seconds, and would hold its locks.

        `named` is what a problem calls the schema.
        """
        started = time.monotonic()
        outcome, problems = "refused", [""]
        try:
            outcome, problems = await self._check(account_id, schema, value)
        finally:
            CHECKS.labels(outcome).inc()
            SECONDS.observe(time.monotonic() - started)
        if outcome in ("ok", "invalid"):
            return Verdict(problems)
        return Verdict([f"{named} cannot be used: {problems[0]}"], usable=False)

    async def _check(self, account_id: UUID, schema: Any, value: Any) -> tuple[str, list[str]]:
        if self._has_found.get(account_id):
            key = _key(account_id, _request(schema, value))
            if (known := self._found.get(key)) is not None:
                # As long as it is asked for: the other checks of a run can take longer than that.
                self._remember(account_id, key, known)
                return known
        async with self._turn(account_id) as processes:
            request = _request(schema, value)
            if not request:
                return "unusable", ["the schema or the value is nested too deeply"]
            for _ in range(2):
                async with processes.checker() as checker:
                    found = await checker.check(request)
                if found is not None:
                    if found.cpu_s >= SLOW_S:
                        self._slow_accounts.put(account_id, True)
                        self._pace.spend(account_id, found.cpu_s)
                        remembered = found.outcome, found.problems
                        self._remember(account_id, _key(account_id, request), remembered)
                    return found.outcome, found.problems
            return "killed", [_TOO_MUCH]

    def _remember(self, account_id: UUID, key: bytes, found: tuple[str, list[str]]) -> None:
        self._found.put(key, found)
        self._has_found.put(account_id, True)

    @contextlib.asynccontextmanager
    async def _turn(self, account_id: UUID) -> AsyncIterator["_Processes"]:
        """Waits until the account has no other check in progress, and a process is free."""
        account = self._accounts.setdefault(account_id, _Account())
        if account.checks > MAX_WAITING:
            raise _too_many()
        account.checks += 1
        try:
            async with contextlib.AsyncExitStack() as turns:
                try:
                    async with asyncio.timeout(MAX_WAIT_S):
                        await turns.enter_async_context(account.turn)
                        await self._pace.wait(account_id)
                        slow = self._slow_accounts.get(account_id)
                        processes = self._slow if slow else self._fast
                        await turns.enter_async_context(processes.free)
                except TimeoutError:
                    if self._pace.due_in(account_id):
                        self._pace.refuse(account_id)
                    raise _too_many() from None
                yield processes
        finally:
            account.checks -= 1
            if not account.checks:
                del self._accounts[account_id]

    async def aclose(self) -> None:
        await self._fast.aclose()
        await self._slow.aclose()


class _Processes:
    """Processes of one priority."""

    def __init__(self, count: int, *, slow: bool = False) -> None:
        self.free = asyncio.Semaphore(count)
        self._are_slow = slow
        self._idle: list[_Checker] = []
        self._busy: set[_Checker] = set()
        self._closed = False

    @contextlib.asynccontextmanager
    async def checker(self) -> AsyncIterator["_Checker"]:
        if self._closed:
            raise _unavailable("closed")
        checker = self._idle.pop() if self._idle else None
        if checker is not None and checker.ended:
            await checker.aclose()
            checker = None
        if checker is None:
            checker = await _Checker.start(slow=self._are_slow)
        self._busy.add(checker)
        try:
            yield checker
        except BaseException:
            checker.reusable = False
            raise
        finally:
            self._busy.discard(checker)
            if checker.reusable and not self._closed:
                self._idle.append(checker)
            else:
                await checker.aclose()

    async def aclose(self) -> None:
        self._closed = True
        for checker in [*self._idle, *self._busy]:
            await checker.aclose()


@dataclass(slots=True)
class _Account:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    checks: int = 0


class _Outcome(NamedTuple):
    outcome: str
    problems: list[str]
    # The processor time that it took.
    cpu_s: float


def _start() -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """A new process and the connection to it.

    Not with the event loop, which copies the memory map of this process to start another one. That
    takes 20 ms or more in a large process.
    """
    ours, theirs = socket.socketpair()
    with theirs, contextlib.ExitStack() as failed:
        failed.callback(ours.close)
        process = subprocess.Popen(  # noqa: S603
            (sys.executable, "-I", str(_PROGRAM)),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env={},
            # A signal for the service, such as the one of Ctrl-C, is not for this process. Not in a
            # session of its own: Linux can give each session an equal share of the processors,
            # whatever its priority (sched_autogroup).
            process_group=0,
        )
        failed.pop_all()
    return process, ours


class _Checker:
    """A process that checks one value at a time."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        responses: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._responses, self._requests = responses, requests
        self.reusable = True
        self._is_slow = False

    @classmethod
    async def start(cls, *, slow: bool) -> "_Checker":
        try:
            process, connection = _start()
        except OSError as error:
            raise _unavailable(repr(error)) from None
        try:
            streams = await asyncio.open_connection(sock=connection)
        except BaseException:
            process.kill()
            connection.close()
            raise
        checker = cls(process, *streams)
        if slow:
            checker._lower_priority()
        try:
            async with asyncio.timeout(START_S):
                await checker._responses.readexactly(1)
        except (TimeoutError, EOFError) as error:
            await checker.aclose()
            raise _unavailable(repr(error)) from None
        except BaseException:
            await checker.aclose()
            raise
        return checker

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    async def check(self, request: bytes) -> _Outcome | None:
        """None if the process was killed by something else, such as the kernel for lack of memory.

        Then the schema is not known to be the reason.
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(MAX_SLOW_CHECK_S if self._is_slow else MAX_CHECK_S)
        slow = loop.call_later(SLOW_S, self._demote, limit, loop.time() + MAX_SLOW_CHECK_S)
        try:
            async with limit:
                try:
                    return await self._exchange(request)
                except (EOFError, ConnectionError, RuntimeError):
                    # It has ended. The event loop raises RuntimeError for a closed connection.
                    self.reusable = False
                    if await self._wait() == -signal.SIGKILL:
                        return None
                    return _Outcome("killed", [_TOO_MUCH], MAX_CPU_S)
        except TimeoutError:
            # The machine is busy. How much processor time it has used is not known.
            self.reusable = False
            return _Outcome("killed", [_TOO_MUCH], 0.0)
        finally:
            slow.cancel()

    async def _exchange(self, request: bytes) -> _Outcome:
        self._requests.write(request)
        [length] = _LENGTH.unpack(await self._responses.readexactly(_LENGTH.size))
        outcome, problems, cpu_s, reusable = json.exact(await self._responses.readexactly(length))
        self.reusable = self.reusable and reusable
        return _Outcome(outcome, problems, cpu_s)

    def _demote(self, limit: asyncio.Timeout, ends_at: float) -> None:
        if not self._is_slow:
            # A process cannot get its priority back, so it is not used again.
            self.reusable = False
            self._lower_priority()
            limit.reschedule(ends_at)

    def _lower_priority(self) -> None:
        self._is_slow = True
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, LOW_PRIORITY)

    async def _wait(self) -> int:
        while (code := self._process.poll()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return code

    async def aclose(self) -> None:
        self._process.kill()
        self._requests.close()
        await self._wait()


def _request(schema: Any, value: Any) -> bytes:
    """What the process reads. Empty if one of the two is nested too deeply for it."""
    try:
        raw = json.dumps(schema), json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return b""
    return _LENGTHS.pack(*map(len, raw)) + b"".join(raw)


def _key(account_id: UUID, request: bytes) -> bytes:
    return account_id.bytes + hashlib.sha256(request).digest()


def _too_many() -> RateLimited:
    return RateLimited(
        "Too many values wait to be checked against their schemas. Try again in a second."
    )


def _unavailable(why: str) -> Unavailable:
    log.error("schema_checks_unavailable", error=why)
    return Unavailable("Values cannot be checked against schemas now. Try again later.")
