"""In which order retention deletes tasks that need each other."""

from itertools import pairwise
from typing import Any

import pytest

from rota.data import retention
from rota.platform import clock
from rota.tasks import retention as tasks
from tests.data.test_retention import ended, ids_of, later, set_days
from tests.data.world import DAYS, World
from tests.tasks.world import uuid_of

FORKS, PAGE = 30, 5


async def test_a_chain_of_forks_goes_in_one_pass(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    chain = [await ended(person) for _ in range(FORKS)]
    async with world_a.service.owner() as connection:
        await connection.executemany(
            "UPDATE tasks SET forked_from = $2, forked_run = 1, forked_step = 1 "
            "WHERE account_id = $1 AND id = $3",
            [
                (person.user_id, uuid_of(original), uuid_of(fork))
                for original, fork in pairwise(chain)
            ],
        )
    read = 0
    page = tasks.page

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal read
        read += 1
        return await page(*args, **options)

    monkeypatch.setattr(retention, "TASKS", PAGE)
    monkeypatch.setattr(tasks, "page", counted)
    await world_a.retention(later(clock.now())).apply(person.user_id)
    assert await ids_of(person) == set()
    # Each task of a page needs those after it, and a last pass finds nothing.
    assert read <= FORKS + 2
