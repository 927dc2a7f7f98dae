"""The short form of boundaries.py: every commit of a run, once before and once after it."""

from rota.dev.stack import Stack
from tests.chaos.boundaries import BOUNDARIES, kill_at_every_boundary


async def test_a_run_survives_the_death_of_its_worker_before_and_after_every_commit(
    mortal_stack: Stack,
) -> None:
    lanes = await kill_at_every_boundary(mortal_stack)
    assert sum(lane.died for lane in lanes) == len(BOUNDARIES)
    # The two in which nobody can know whether the write took effect.
    assert sum(lane.asked for lane in lanes) == 2
