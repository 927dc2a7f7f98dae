"""The short form of storm.py: 48 tasks, and each component is killed at least once."""

from rota.dev.stack import Stack
from tests.chaos.storm import VICTIMS, report, storm


async def test_nothing_is_lost_or_repeated_while_every_component_is_killed(
    killable_stack: Stack,
) -> None:
    found = await storm(killable_stack, tasks=48, kills=8, seed=3)
    report(found)
    assert set(found.killed) == set(VICTIMS)
    assert len(found.acknowledged) == 48
    assert found.counts == {"COMPLETED": 48}
    assert not found.world.unexpected
    assert not any(found.wrong.values()), found.wrong
