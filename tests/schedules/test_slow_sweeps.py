"""A sweep that takes long, and tasks that only another version of the service can create."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from rota.composition import Composition
from rota.schedules.sweep import Sweep
from tests.schedules.world import Clock, add_unknown_field, create, make_due, read, total
from tests.service import Service
from tests.tasks.world import newcomer


async def test_a_schedule_is_handled_at_the_time_at_which_its_turn_comes(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await newcomer(board), await newcomer(board)
    await make_due(board, await create(first), timedelta(minutes=1))
    each_minute = await create(second, cron="* * * * *", timeZone="UTC")
    due_at = await make_due(board, each_minute)
    now = Clock(due_at + timedelta(seconds=1))
    began = now.now + timedelta(minutes=10)
    sweep, observed = Sweep(parts.db, parts.task_creation, now=now), list[float]()
    handle = sweep._handle

    async def slowly(account_id: UUID, schedule_id: UUID) -> bool:
        done = await handle(account_id, schedule_id)
        now.now = began
        return done

    monkeypatch.setattr(sweep, "_handle", slowly)
    monkeypatch.setattr("rota.schedules.sweep.DELAY.observe", observed.append)
    # Each had one turn, and the second one was for the minute at which its turn came.
    assert await sweep.handle_due() == 2
    after = (await read(second, each_minute))["schedule"]
    assert timedelta(0) <= began - datetime.fromisoformat(after["lastDueAt"]) < timedelta(minutes=1)
    assert datetime.fromisoformat(after["nextAt"]) > began
    assert await total(second) == 1
    assert len(observed) == 2


async def test_a_task_that_a_newer_version_stored_fails_with_a_reason(
    board: Service, parts: Composition
) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    await add_unknown_field(board, schedule)
    await make_due(board, schedule)
    assert await Sweep(parts.db, parts.task_creation).handle_due() == 1
    after = (await read(person, schedule))["schedule"]
    assert (after["lastOutcome"], after["lastError"]["code"]) == ("failed", "CONFLICT")
    assert after["nextAt"] == schedule["nextAt"]
    assert await total(person) == 0
