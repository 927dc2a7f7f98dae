"""Each variant with a simulated Stripe server, and a clock that tests move."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from rota.platform import clock
from tests.plans.world import World


@pytest.fixture(scope="session")
async def world_a(stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, "a", "plans_a", allowances={}) as started:
        yield started


@pytest.fixture(scope="session")
async def world_b(stack: Stack) -> AsyncIterator[World]:
    changes = {"allowances": {}, "egress_allow": ("127.0.0.0/8",)}
    async with World.start(stack, "b", "plans_b", **changes) as started:
        yield started


# The clock and faults are reset after each test.


@pytest.fixture
async def a(world_a: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(clock, "now", world_a.now)
    yield world_a
    await world_a.clear_faults()


@pytest.fixture
async def b(world_b: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(clock, "now", world_b.now)
    yield world_b
    await world_b.clear_faults()
