"""The short form of deploys.py: three restarts, with calls of two seconds."""

from rota.dev.stack import Stack
from tests.chaos.deploys import deploys, report


async def test_rolling_restarts_repeat_no_model_call_and_no_write_and_ask_nobody(
    killable_stack: Stack,
) -> None:
    found = await deploys(killable_stack, restarts=3, model_s=2, write_s=2)
    report(found)
    assert found.figures["model calls in progress at a SIGTERM"]
    assert found.figures["writes in progress at a SIGTERM"]
    assert not found.world.unexpected
    assert not any(found.wrong.values()), found.wrong
