"""The short form of pauses.py: one pause before and one after every commit of a run."""

from rota.dev.stack import Stack
from tests.chaos.pauses import PAUSES, pause_at_every_boundary


async def test_a_paused_worker_that_resumes_beside_its_successor_changes_nothing(
    killable_stack: Stack,
) -> None:
    lanes = await pause_at_every_boundary(killable_stack)
    assert sum(lane.died for lane in lanes) == len(PAUSES)
