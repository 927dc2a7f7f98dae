"""An account without a free database connection does not stop the schedules of others."""

from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from rota.composition import Composition
from rota.platform import connection_shares
from rota.schedules.sweep import Sweep
from tests.schedules.world import create, make_due
from tests.service import Service
from tests.tasks.world import newcomer


async def test_an_account_without_a_free_connection_does_not_stop_the_schedules_of_others(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, other = await newcomer(board), await newcomer(board)
    for _ in range(2):
        await make_due(board, await create(busy), timedelta(seconds=3))
    await make_due(board, await create(other))
    sweep = Sweep(parts.db, parts.task_creation)
    # The transaction over the share is refused at once.
    monkeypatch.setattr(connection_shares, "MAX_WAITING", 0)
    async with AsyncExitStack() as held:
        for _ in range(4):
            await held.enter_async_context(parts.db.read(busy.user_id))
        before = connection_shares.REFUSED._value.get()
        assert await sweep.handle_due() == 1
        # One for the time and one for putting it off. Then the account is left alone.
        assert connection_shares.REFUSED._value.get() - before == 2
    assert (await other.get("/api/tasks")).json()["total"] == 1
    assert await sweep.handle_due() == 2
    assert (await busy.get("/api/tasks")).json()["total"] == 2
