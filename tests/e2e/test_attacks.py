"""The short form of `make attacks`: four attacks by one account, and what another one notices."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.load.attack_target import Attacked, attacked
from tests.load.attacks import MAX_GROWTH_MB, Result, Setup, measure

SECONDS = 1.5
# The ratio that `make attacks` measures needs a quiet machine. Without the protection against these
# attacks, requests take many seconds or a process grows by hundreds of megabytes.
MAX_ANSWER_S = 2.0


@pytest.fixture(scope="module")
async def setup(stack: Stack) -> AsyncIterator[Setup]:
    async with Setup.start(stack, "a") as started:
        yield started


@pytest.fixture(scope="module")
async def target(setup: Setup) -> AsyncIterator[Attacked]:
    parts = setup
    async with attacked(parts.stack, parts.variant, parts.scripted) as started:
        yield started


@pytest.mark.timed
@pytest.mark.parametrize(
    "name",
    [
        "schema: exponential regex",
        "200 writes behind one lock",
        "8 unread large pages",
        "500 half-sent bodies",
    ],
)
async def test_another_account_does_not_notice_an_attack(
    setup: Setup, target: Attacked, name: str
) -> None:
    result = Result()
    await measure(target, name, setup.tools_url, SECONDS, result, setup.stalls)
    assert not result.failures
    assert result.during.keys() == result.alone.keys() != set()
    for kind, times in result.during.items():
        assert max(times) < MAX_ANSWER_S, kind
    assert max(result.growth_mb.values()) <= MAX_GROWTH_MB, result.growth_mb
