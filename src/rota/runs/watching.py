"""Watches long calls: a slice that has lost its run stops waiting for them."""

import asyncio
import contextlib
from typing import Any

import structlog

from rota.events.fanout import Fanout
from rota.runs.contracts import RunInput
from rota.runs.run_context import RunContext, ids_of

log = structlog.get_logger()

# A call that takes longer than this is watched: it is aborted when its task is cancelled.
UNWATCHED_S = 0.5
# How often a slice looks whether its task was cancelled, while the account has new events.
WATCH_EVERY_S = 1.0


async def finishes_before_loss(
    call: "asyncio.Future[Any]", context: RunContext, fanout: Fanout, run_input: RunInput
) -> bool:
    """Waits for a call. Returns False if the slice has lost its run before the call ended."""
    await asyncio.wait({call}, timeout=UNWATCHED_S)
    if not call.done():
        watching = asyncio.create_task(_until_lost(context, fanout, run_input))
        try:
            await asyncio.wait({call, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
    return call.done()


async def abort(call: "asyncio.Future[Any]") -> None:
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await call


async def _until_lost(context: RunContext, fanout: Fanout, run_input: RunInput) -> None:
    """Returns when another slice or a person has raised the fence.

    Redis says that the account has new events. Without Redis, Temporal cancels the slice at its
    next heartbeat.
    """
    account_id, _ = ids_of(run_input)
    async with fanout.listening(account_id) as changed:
        while (holds := await _holds_fence(context, run_input)) is not False:
            await asyncio.sleep(WATCH_EVERY_S)
            if holds:
                await changed.wait()
                changed.clear()


async def _holds_fence(context: RunContext, run_input: RunInput) -> bool | None:
    """None if the database does not say."""
    try:
        return await context.holds_fence(run_input)
    except Exception as error:
        log.warning("fence_not_read", error=repr(error))
        return None
