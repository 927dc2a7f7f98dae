"""The short forms of endurance.py."""

from rota.dev.stack import Stack
from tests.chaos.endurance import fairness, waiting, without_workers


async def test_without_any_worker_people_go_on_and_the_work_resumes_by_itself(
    mortal_stack: Stack,
) -> None:
    found = await without_workers(mortal_stack, away_s=10, tasks=6)
    print(found)


async def test_waiting_tasks_outlive_a_restart_of_everything_and_take_their_decisions(
    mortal_stack: Stack,
) -> None:
    found = await waiting(mortal_stack, tasks=30)
    print(found)
    before = found["worker's memory before, MB"]
    assert found["after a restart of everything, with them waiting, MB"] < before + 10


async def test_an_account_that_floods_does_not_hold_up_another(mortal_stack: Stack) -> None:
    found = await fairness(mortal_stack, flood=200, few=10)
    print(found)
    assert found["share"] <= 0.25, found
