"""A worker whose loop ends does not go on without it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from rota.dev.stack import Stack
from rota.platform.loops import Loops
from rota.schedules.sweep import Sweep
from rota.worker import run_worker
from tests.service import prepared_settings

NOWHERE = "127.0.0.1:1"


async def fail(_: object = None) -> None:
    raise ZeroDivisionError


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("has_temporal", [True, False])
async def test_a_worker_ends_with_an_error_when_one_of_its_loops_ends(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, has_temporal: bool
) -> None:
    settings = await prepared_settings(stack, "a", "loops")
    if not has_temporal:
        settings = settings.model_copy(update={"temporal_address": NOWHERE})
    monkeypatch.setattr(Sweep, "run", fail)
    with capture_logs() as logs:
        async with asyncio.timeout(60):
            with pytest.raises(RuntimeError, match="schedules"):
                await run_worker(settings, asyncio.Event())
    [failed] = [each for each in logs if each["event"] == "background_failed"]
    assert (failed["loop"], failed["error"]) == ("schedules", "ZeroDivisionError()")


async def test_a_loop_that_returns_or_is_cancelled_has_failed_too() -> None:
    stop = asyncio.Event()
    returning = Loops(stop)
    returning.start("short", asyncio.sleep(0))
    await stop.wait()
    assert returning.failed == "short"

    stop.clear()
    cancelled = Loops(stop)
    cancelled.start("long", forever())
    [task] = [each for each in asyncio.all_tasks() if each.get_name() == "long"]
    task.cancel()
    await stop.wait()
    assert cancelled.failed == "long"


async def test_loops_that_are_ended_have_not_failed() -> None:
    stop = asyncio.Event()
    loops = Loops(stop)
    loops.start("long", forever())
    await loops.end(5)
    assert loops.failed is None
    assert not stop.is_set()
