"""The short form of boundaries.py: one kill before and one after every commit of a run."""

from rota.dev.stack import Stack
from tests.chaos.boundaries import BOUNDARIES, kill_at_every_boundary


async def test_a_run_survives_the_death_of_its_worker_before_and_after_every_commit(
    killable_stack: Stack,
) -> None:
    lanes = await kill_at_every_boundary(killable_stack)
    assert sum(lane.died for lane in lanes) == len(BOUNDARIES)
    # In two of them it is unknown whether the write took effect.
    assert sum(lane.asked for lane in lanes) == 2
