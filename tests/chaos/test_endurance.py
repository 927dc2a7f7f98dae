"""The short forms of endurance.py."""

import pytest

from rota.dev.stack import Stack
from tests.chaos.endurance import waiting, without_workers


@pytest.mark.timed
async def test_people_can_work_without_workers_and_the_runs_resume_automatically(
    killable_stack: Stack,
) -> None:
    found = await without_workers(killable_stack, away_s=10, tasks=6)
    print(found)


async def test_waiting_tasks_survive_a_restart_of_everything_and_accept_decisions(
    killable_stack: Stack,
) -> None:
    found = await waiting(killable_stack, tasks=30)
    print(found)
    before = found["worker's memory before, MB"]
    assert found["after a restart of everything, with them waiting, MB"] < before + 10
