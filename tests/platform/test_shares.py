"""Shares: limits in total and for one account, turns, bounded waiting, and no lost places."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from rota.platform.errors import RateLimited
from rota.platform.shares import Shares

ONE, OTHER, THIRD = (uuid4() for _ in range(3))


def shares(
    total: int = 4, per_account: int = 2, waiting: int = 10, wait_s: float = 5, name: str = "test"
) -> Shares:
    return Shares(
        name,
        "The account uses its share.",
        total=total,
        per_account=per_account,
        waiting=waiting,
        wait_s=wait_s,
    )


async def settled() -> None:
    """Lets every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def taken(places: Shares, *accounts: UUID) -> AsyncIterator[None]:
    for account in accounts:
        await places.enter(account)
    try:
        yield
    finally:
        for account in accounts:
            places.leave(account)


async def test_an_account_with_its_whole_share_waits_and_others_do_not() -> None:
    places = shares()
    async with taken(places, ONE, ONE):
        waiting = asyncio.create_task(places.enter(ONE))
        await settled()
        assert not waiting.done()
        async with asyncio.timeout(1):
            async with places.place(OTHER), places.place(OTHER):
                assert not waiting.done()
    await waiting
    places.leave(ONE)


async def test_accounts_that_wait_take_turns() -> None:
    places = shares(total=1, per_account=1)
    served: list[UUID] = []

    async def work(account: UUID) -> None:
        async with places.place(account):
            served.append(account)

    async with taken(places, THIRD):
        tasks = []
        for account in (ONE, ONE, ONE, OTHER, THIRD):
            tasks.append(asyncio.create_task(work(account)))
            await settled()
    await asyncio.gather(*tasks)
    assert served == [ONE, OTHER, THIRD, ONE, ONE]


async def test_waiting_is_bounded_in_time_and_in_number() -> None:
    places = shares(total=1, waiting=1, wait_s=0.05, name="bounded")
    async with taken(places, ONE):
        first = asyncio.create_task(places.enter(ONE))
        await settled()
        with pytest.raises(RateLimited, match="share") as refused:
            await places.enter(ONE)
        assert refused.value.headers == {"Retry-After": "1"}
        with pytest.raises(RateLimited):
            await first
    refusals = REGISTRY.get_sample_value("rota_share_refused_total", {"share": "bounded"})
    waits = REGISTRY.get_sample_value("rota_share_wait_seconds_count", {"share": "bounded"})
    assert (refusals, waits) == (2, 1)
    async with asyncio.timeout(1), places.place(ONE):
        pass


async def test_a_caller_that_is_cancelled_loses_no_place() -> None:
    places = shares(total=1)
    for give_place_first in (False, True):
        await places.enter(ONE)
        waiting = asyncio.create_task(places.enter(OTHER))
        await settled()
        if give_place_first:
            places.leave(ONE)
            waiting.cancel()
        else:
            waiting.cancel()
            places.leave(ONE)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(1), places.place(THIRD):
            pass
    assert not places._taken_by
    assert not places._waiting


async def test_accounts_with_many_places_leave_the_last_ones_to_others() -> None:
    places = shares(total=50, per_account=50, wait_s=0.01)
    assert places.room(ONE) == 40
    async with taken(places, *[ONE] * 40):
        with pytest.raises(RateLimited):
            await places.enter(ONE)
        assert (places.room(ONE), places.room(OTHER)) == (0, 8)
        async with taken(places, *[OTHER] * 8):
            with pytest.raises(RateLimited):
                await places.enter(OTHER)
            assert places.room(THIRD) == 2
    assert places.room(THIRD) == 40


async def test_an_account_with_few_places_goes_before_one_that_has_waited_longer() -> None:
    places = shares(total=5, per_account=5)
    async with taken(places, *[ONE] * 4):
        first = asyncio.create_task(places.enter(ONE))
        await settled()
        async with taken(places, OTHER):
            second = asyncio.create_task(places.enter(THIRD))
            await settled()
            assert not second.done()
        await second
        assert not first.done()
        places.leave(THIRD)
    await first
    places.leave(ONE)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), max_size=40),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_limits_hold_for_any_work(
    work: list[tuple[int, int, int]], total: int, per_account: int
) -> None:
    """Work of several accounts, some of it cancelled, never exceeds a limit, and all of it ends."""

    async def run() -> None:
        places = shares(total=total, per_account=per_account, waiting=1000)
        accounts = [uuid4() for _ in range(5)]
        now: Counter[UUID] = Counter()

        async def one(account: UUID, turns: int) -> None:
            async with places.place(account):
                now[account] += 1
                try:
                    assert now[account] <= per_account
                    assert now.total() <= total
                    for _ in range(turns):
                        await asyncio.sleep(0)
                finally:
                    now[account] -= 1

        tasks = []
        for account, turns, cancel in work:
            task = asyncio.create_task(one(accounts[account], turns))
            tasks.append(task)
            if cancel == 2:
                asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(
            outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in outcomes
        )
        assert places._taken == 0
        assert not places._taken_by
        assert not places._waiting
        assert not places._turns

    asyncio.run(run())
