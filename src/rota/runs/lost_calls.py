"""Calls whose slice has lost its run: the slice stops waiting, and some calls finish without it.

Redis says when an account has new events. Then one look in the database serves all watched runs of
the account, however many they are. Without Redis, Temporal cancels a slice at its next heartbeat.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import structlog
from temporalio import activity

from rota.events.fanout import Fanout, Woken
from rota.runs.call_protection import STOPPING_S
from rota.runs.contracts import RunInput
from rota.runs.model_errors import GiveUp, TryAgain
from rota.runs.run_context import FencedOut, RunContext, ids_of
from rota.runs.tools import ToolUnavailable

log = structlog.get_logger()

# A call that takes longer than this is watched: it is aborted when its task is cancelled.
UNWATCHED_S = 0.5
# How often a process looks whether the tasks of an account were cancelled, while it has new events.
WATCH_EVERY_S = 1.0


class Watching:
    """Watches long calls, so that a slice notices when it has lost its run."""

    def __init__(self, context: RunContext, fanout: Fanout) -> None:
        self._context = context
        self._fanout = fanout
        self._accounts: dict[UUID, _Account] = {}

    async def finishes_before_loss(self, call: "asyncio.Future[Any]", run_input: RunInput) -> bool:
        """Waits for a call. Returns False if the slice has lost its run before the call ended."""
        await asyncio.wait({call}, timeout=UNWATCHED_S)
        if not call.done():
            with self._watched(run_input) as lost:
                await asyncio.wait({call, lost}, return_when=asyncio.FIRST_COMPLETED)
        return call.done()

    @contextlib.contextmanager
    def _watched(self, run_input: RunInput) -> Iterator["asyncio.Future[None]"]:
        """Done when another slice or a person has raised the fence."""
        account_id, _ = ids_of(run_input)
        account = self._accounts.get(account_id)
        if account is None:
            account = self._accounts[account_id] = _Account(account_id, self._context, self._fanout)
        lost = account.add(run_input)
        try:
            yield lost
        finally:
            if account.remove(lost):
                del self._accounts[account_id]


class _Account:
    """The watched runs of one account."""

    def __init__(self, account_id: UUID, context: RunContext, fanout: Fanout) -> None:
        self._account_id = account_id
        self._context = context
        self._fanout = fanout
        self._runs: dict[asyncio.Future[None], RunInput] = {}
        self._changed: Woken | None = None
        self._watching = asyncio.create_task(self._watch())

    def add(self, run_input: RunInput) -> "asyncio.Future[None]":
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._runs[lost] = run_input
        if self._changed is not None:
            # It may have been lost before anybody listened.
            self._changed.set()
        return lost

    def remove(self, lost: "asyncio.Future[None]") -> bool:
        """Whether it was the last one. Then the account is no longer watched."""
        del self._runs[lost]
        if not self._runs:
            self._watching.cancel()
        return not self._runs

    async def _watch(self) -> None:
        async with self._fanout.listening(self._account_id) as self._changed:
            while self._runs:
                self._changed.clear()
                has_looked = await self._look()
                await asyncio.sleep(WATCH_EVERY_S)
                if has_looked:
                    await self._changed.wait()

    async def _look(self) -> bool:
        """Whether the database has said which runs are lost."""
        try:
            lost = await self._context.lost(self._account_id, set(self._runs.values()))
        except Exception as error:
            log.warning("fence_read_failed", error=repr(error))
            return False
        for future, run_input in self._runs.items():
            if run_input in lost and not future.done():
                future.set_result(None)
        return True


class AbandonedCalls:
    """Model calls of cancelled tasks. They finish beside the slices, without a worker's slot."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._calls: set[asyncio.Task[Any]] = set()

    async def add(self, calling: "asyncio.Task[Any]") -> None:
        """The provider bills the call in any case, so it is stored and charged when it ends."""
        log.info("cancelled_call_continues", run=activity.info().workflow_id)
        is_full = len(self._calls) >= self._limit
        self._calls.add(calling)
        calling.add_done_callback(self._forget)
        if is_full:
            # This one keeps the slot of its slice.
            await asyncio.wait({calling})

    def _forget(self, calling: "asyncio.Task[Any]") -> None:
        self._calls.discard(calling)
        error = None if calling.cancelled() else calling.exception()
        expected = FencedOut | GiveUp | TryAgain | ToolUnavailable
        if error is not None and not isinstance(error, expected):
            log.error("cancelled_call_failed", error=type(error).__name__)

    async def aclose(self) -> None:
        """Waits a moment for the calls, then aborts them."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=STOPPING_S)
        for calling in self._calls:
            calling.cancel()


async def abort(call: "asyncio.Future[Any]") -> None:
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await call
