"""The short form of storm.py: some tasks, and each part killed at least once."""

from rota.dev.stack import Stack
from tests.chaos.storm import VICTIMS, report, storm


async def test_nothing_is_lost_or_done_twice_while_every_part_is_killed(
    mortal_stack: Stack,
) -> None:
    found = await storm(mortal_stack, tasks=48, kills=8, seed=3)
    report(found)
    assert set(found.killed) == set(VICTIMS)
    assert len(found.acknowledged) == 48
    assert found.counts == {"COMPLETED": 48}
    assert not found.world.surprises
    assert not any(found.wrong.values()), found.wrong
