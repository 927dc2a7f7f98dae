"""What a run reserves, spends and gives back, case by case."""

from datetime import timedelta
from typing import Any

import pytest

from rota.credits import holds, ledger, queries
from rota.credits.allowance import refresh
from rota.credits.ledger import RunId
from rota.platform import clock, ids
from rota.platform.db import AccountTransaction, Database
from tests.credits.world import ALLOWANCE_OF, CENT, new_account, spend, start_run


async def books_of(tx: AccountTransaction, *names: str) -> list[Any]:
    row = await tx.fetchrow("SELECT * FROM balances WHERE account_id = $1", tx.account_id)
    return [row[name] for name in names]


async def under(tx: AccountTransaction, above: RunId, budget: int, drawn: int) -> RunId:
    owner = RunId(ids.new_uuid(), 1)
    assert await holds.hold_under(tx, owner, above, budget)
    await holds.draw(tx, owner, drawn)
    return owner


async def test_a_hold_takes_the_allowance_first_and_the_top_up_for_the_rest(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard", cents=1_000)
    async with books.write(account_id) as tx:
        await start_run(tx, 1_600 * CENT)
        found = await books_of(tx, "allowance", "topup", "held_allowance", "held_topup")
    assert found == [0, 900 * CENT, 1_500 * CENT, 100 * CENT]


@pytest.mark.parametrize(("tier", "enough"), [("standard", False), ("basic", True)])
async def test_without_overflow_the_top_up_is_for_accounts_without_an_allowance(
    books: Database, tier: str, enough: bool
) -> None:
    account_id = await new_account(books, tier, cents=2_000)
    async with books.write(account_id) as tx:
        await queries.set_overflow(tx, False)
        owner = RunId(ids.new_uuid(), 1)
        done = await holds.hold(tx, owner, 1_600 * CENT, ALLOWANCE_OF)
    assert done == enough


async def test_what_a_subtask_has_left_goes_to_the_next_task_above_that_goes_on(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        middle = await under(tx, top, 40 * CENT, 30 * CENT)
        lowest = await under(tx, middle, 20 * CENT, 20 * CENT)
        assert await holds.left(tx, top) == 20 * CENT
        await holds.release(tx, middle)
        assert await holds.left(tx, top) == 30 * CENT
        await holds.release(tx, lowest)
        assert await holds.left(tx, top) == 50 * CENT
        await holds.release(tx, top)
        found = await books_of(tx, "topup", "held_topup")
    assert found == [100 * CENT, 0]


async def test_a_subtask_draws_through_the_tasks_above_it_and_no_more_than_its_budget(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        middle = await under(tx, top, 40 * CENT, 0)
        lowest = await under(tx, middle, 30 * CENT, 25 * CENT)
        assert await holds.left(tx, lowest) == 25 * CENT
        await holds.draw(tx, lowest, 25 * CENT)
        assert await holds.left(tx, lowest) == 30 * CENT
        assert await holds.left(tx, middle) == 0
        assert await holds.left(tx, top) == 20 * CENT
        await holds.release(tx, top)
        # Nothing is drawn from a task that has ended.
        await holds.draw(tx, middle, CENT)
        assert await holds.left(tx, middle) == 0
        assert not await holds.hold_under(tx, RunId(ids.new_uuid(), 1), top, CENT)


async def test_a_call_that_ends_late_is_paid_with_what_its_run_gave_back(books: Database) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as tx:
        run = await start_run(tx, 60 * CENT)
        await holds.release(tx, run)
        await spend(tx, run, 1, 50 * CENT)
        # And for no more than that.
        await spend(tx, run, 2, 50 * CENT)
        found = await books_of(tx, "topup", "spent", "owed")
    assert found == [40 * CENT, 60 * CENT, 0]


async def test_a_late_call_whose_money_is_gone_is_owed_until_money_comes_in(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as tx:
        late = await start_run(tx, 60 * CENT)
        await holds.release(tx, late)
        other = await start_run(tx, 90 * CENT)
        await spend(tx, late, 1, 50 * CENT)
        assert await books_of(tx, "topup", "owed") == [0, -40 * CENT]
        # What another run gives back pays it first, then the next payment.
        await spend(tx, other, 1, 75 * CENT)
        await holds.release(tx, other)
        assert await books_of(tx, "topup", "owed") == [0, -25 * CENT]
        await ledger.top_up(tx, 30 * CENT, "pi_second")
        assert await books_of(tx, "topup", "owed") == [5 * CENT, 0]


async def test_a_late_call_leaves_a_top_up_alone_that_is_not_to_overflow(books: Database) -> None:
    account_id = await new_account(books, "standard", cents=100)
    async with books.write(account_id) as tx:
        await queries.set_overflow(tx, False)
        late = await start_run(tx, 60 * CENT)
        await holds.release(tx, late)
        await start_run(tx, 1_490 * CENT)
        await spend(tx, late, 1, 50 * CENT)
        found = await books_of(tx, "allowance", "topup", "owed")
    assert found == [0, 100 * CENT, -40 * CENT]


async def test_an_account_is_told_once_that_its_money_is_used_up(books: Database) -> None:
    account_id = await new_account(books, cents=100)
    told: list[int] = []
    async with books.write(account_id) as tx:
        for payment in ("pi_2", "pi_3"):
            for _ in range(2):
                run = await start_run(tx, 100 * CENT if not told else 0)
                await spend(tx, run, 1, 100 * CENT)
                await holds.release(tx, run)
                told.append(
                    await tx.fetchval(
                        "SELECT count(*) FROM events WHERE account_id = $1"
                        " AND type = 'credits.depleted'",
                        account_id,
                    )
                )
            await ledger.top_up(tx, CENT, payment)
            await ledger.refund(tx, CENT, payment)
    assert told == [1, 1, 2, 2]


async def owing(tx: AccountTransaction) -> RunId:
    """A run that holds the whole allowance, in an account that owes 50 cents of it."""
    late = await start_run(tx, 60 * CENT)
    await holds.release(tx, late)
    other = await start_run(tx, 1_500 * CENT)
    await spend(tx, late, 1, 50 * CENT)
    assert await books_of(tx, "allowance", "owed") == [0, -50 * CENT]
    return other


async def test_what_an_allowance_pays_of_a_debt_is_used_of_it(books: Database) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        other = await owing(tx)
        await holds.release(tx, other)
        found = await books_of(tx, "allowance", "owed", "allowance_used")
    assert found == [1_450 * CENT, 0, 50 * CENT]


async def test_the_next_months_allowance_pays_a_debt_first(books: Database) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        await owing(tx)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        found = await books_of(tx, "allowance", "owed", "allowance_used")
    assert found == [1_450 * CENT, 0, 50 * CENT]


async def test_a_run_over_the_months_end_uses_and_gives_back_the_old_month(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        run = await start_run(tx, 100 * CENT)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        await spend(tx, run, 1, 30 * CENT)
        found = await books_of(tx, "allowance", "allowance_used", "spent")
        assert found == [1_500 * CENT, 0, 30 * CENT]
        await holds.release(tx, run)
        found = await books_of(tx, "allowance", "granted", "held_allowance")
    # Two months were granted, less what was never used of the first.
    assert found == [1_500 * CENT, -1_530 * CENT, 0]
