"""Model calls of cancelled tasks: they finish beside the slices, without a slot of the worker."""

import asyncio
from typing import Any

import structlog
from temporalio import activity

from rota.runs.heartbeat import STOPPING_S
from rota.runs.model_errors import GiveUp, TryAgain
from rota.runs.run_context import FencedOut
from rota.runs.tools import ToolUnavailable

log = structlog.get_logger()


class AbandonedCalls:
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
