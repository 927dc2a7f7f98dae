"""What a run reserves, spends and gives back, case by case."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from rota.credits import holds, ledger, queries
from rota.credits.allowance import refresh
from rota.credits.ledger import RunId
from rota.platform import clock, ids
from rota.platform.db import Database, WriteConnection
from tests.credits.world import ALLOWANCE_OF, CENT, new_account, spend, start_run


async def books_of(connection: WriteConnection, account_id: UUID, *names: str) -> list[Any]:
    row = await connection.fetchrow("SELECT * FROM balances WHERE account_id = $1", account_id)
    return [row[name] for name in names]


async def under(
    connection: WriteConnection, account_id: UUID, above: RunId, budget: int, drawn: int
) -> RunId:
    owner = RunId(ids.new_uuid(), 1)
    assert await holds.hold_under(connection, account_id, owner, above, budget)
    await holds.draw(connection, account_id, owner, drawn)
    return owner


async def test_a_hold_takes_the_allowance_first_and_the_top_up_for_the_rest(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard", cents=1_000)
    async with books.write(account_id) as connection:
        await start_run(connection, account_id, 1_600 * CENT)
        found = await books_of(
            connection, account_id, "allowance", "topup", "held_allowance", "held_topup"
        )
    assert found == [0, 900 * CENT, 1_500 * CENT, 100 * CENT]


@pytest.mark.parametrize(("tier", "enough"), [("standard", False), ("basic", True)])
async def test_without_overflow_the_top_up_is_for_accounts_without_an_allowance(
    books: Database, tier: str, enough: bool
) -> None:
    account_id = await new_account(books, tier, cents=2_000)
    async with books.write(account_id) as connection:
        await queries.set_overflow(connection, account_id, False)
        owner = RunId(ids.new_uuid(), 1)
        done = await holds.hold(connection, account_id, owner, 1_600 * CENT, ALLOWANCE_OF)
    assert done == enough


async def test_what_a_subtask_has_left_goes_to_the_next_task_above_that_goes_on(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as connection:
        top = await start_run(connection, account_id, 50 * CENT)
        middle = await under(connection, account_id, top, 40 * CENT, 30 * CENT)
        lowest = await under(connection, account_id, middle, 20 * CENT, 20 * CENT)
        assert await holds.left(connection, account_id, top) == 20 * CENT
        await holds.release(connection, account_id, middle)
        assert await holds.left(connection, account_id, top) == 30 * CENT
        await holds.release(connection, account_id, lowest)
        assert await holds.left(connection, account_id, top) == 50 * CENT
        await holds.release(connection, account_id, top)
        found = await books_of(connection, account_id, "topup", "held_topup")
    assert found == [100 * CENT, 0]


async def test_a_subtask_draws_through_the_tasks_above_it_and_no_more_than_its_budget(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as connection:
        top = await start_run(connection, account_id, 50 * CENT)
        middle = await under(connection, account_id, top, 40 * CENT, 0)
        lowest = await under(connection, account_id, middle, 30 * CENT, 25 * CENT)
        assert await holds.left(connection, account_id, lowest) == 25 * CENT
        await holds.draw(connection, account_id, lowest, 25 * CENT)
        assert await holds.left(connection, account_id, lowest) == 30 * CENT
        assert await holds.left(connection, account_id, middle) == 0
        assert await holds.left(connection, account_id, top) == 20 * CENT
        await holds.release(connection, account_id, top)
        # Nothing is drawn from a task that has ended.
        await holds.draw(connection, account_id, middle, CENT)
        assert await holds.left(connection, account_id, middle) == 0
        assert not await holds.hold_under(
            connection, account_id, RunId(ids.new_uuid(), 1), top, CENT
        )


async def test_a_call_that_ends_late_is_paid_with_what_its_run_gave_back(books: Database) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as connection:
        run = await start_run(connection, account_id, 60 * CENT)
        await holds.release(connection, account_id, run)
        await spend(connection, account_id, run, 1, 50 * CENT)
        # And for no more than that.
        await spend(connection, account_id, run, 2, 50 * CENT)
        found = await books_of(connection, account_id, "topup", "spent", "owed")
    assert found == [40 * CENT, 60 * CENT, 0]


async def test_a_late_call_whose_money_is_gone_is_owed_until_money_comes_in(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as connection:
        late = await start_run(connection, account_id, 60 * CENT)
        await holds.release(connection, account_id, late)
        other = await start_run(connection, account_id, 90 * CENT)
        await spend(connection, account_id, late, 1, 50 * CENT)
        assert await books_of(connection, account_id, "topup", "owed") == [0, -40 * CENT]
        # What another run gives back pays it first, then the next payment.
        await spend(connection, account_id, other, 1, 75 * CENT)
        await holds.release(connection, account_id, other)
        assert await books_of(connection, account_id, "topup", "owed") == [0, -25 * CENT]
        await ledger.top_up(connection, account_id, 30 * CENT, "pi_second")
        assert await books_of(connection, account_id, "topup", "owed") == [5 * CENT, 0]


async def test_a_late_call_leaves_a_top_up_alone_that_is_not_to_overflow(books: Database) -> None:
    account_id = await new_account(books, "standard", cents=100)
    async with books.write(account_id) as connection:
        await queries.set_overflow(connection, account_id, False)
        late = await start_run(connection, account_id, 60 * CENT)
        await holds.release(connection, account_id, late)
        await start_run(connection, account_id, 1_490 * CENT)
        await spend(connection, account_id, late, 1, 50 * CENT)
        found = await books_of(connection, account_id, "allowance", "topup", "owed")
    assert found == [0, 100 * CENT, -40 * CENT]


async def test_an_account_is_told_once_that_its_money_is_used_up(books: Database) -> None:
    account_id = await new_account(books, cents=100)
    told: list[int] = []
    async with books.write(account_id) as connection:
        for payment in ("pi_2", "pi_3"):
            for _ in range(2):
                run = await start_run(connection, account_id, 100 * CENT if not told else 0)
                await spend(connection, account_id, run, 1, 100 * CENT)
                await holds.release(connection, account_id, run)
                told.append(
                    await connection.fetchval(
                        "SELECT count(*) FROM events WHERE account_id = $1"
                        " AND type = 'credits.depleted'",
                        account_id,
                    )
                )
            await ledger.top_up(connection, account_id, CENT, payment)
            await ledger.refund(connection, account_id, CENT, payment)
    assert told == [1, 1, 2, 2]


async def owing(connection: WriteConnection, account_id: UUID) -> RunId:
    """A run that holds the whole allowance, in an account that owes 50 cents of it."""
    late = await start_run(connection, account_id, 60 * CENT)
    await holds.release(connection, account_id, late)
    other = await start_run(connection, account_id, 1_500 * CENT)
    await spend(connection, account_id, late, 1, 50 * CENT)
    assert await books_of(connection, account_id, "allowance", "owed") == [0, -50 * CENT]
    return other


async def test_what_an_allowance_pays_of_a_debt_is_used_of_it(books: Database) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as connection:
        other = await owing(connection, account_id)
        await holds.release(connection, account_id, other)
        found = await books_of(connection, account_id, "allowance", "owed", "allowance_used")
    assert found == [1_450 * CENT, 0, 50 * CENT]


async def test_the_next_months_allowance_pays_a_debt_first(books: Database) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as connection:
        await owing(connection, account_id)
        await refresh(connection, account_id, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        found = await books_of(connection, account_id, "allowance", "owed", "allowance_used")
    assert found == [1_450 * CENT, 0, 50 * CENT]


async def test_a_run_over_the_months_end_uses_and_gives_back_the_old_month(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as connection:
        run = await start_run(connection, account_id, 100 * CENT)
        await refresh(connection, account_id, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        await spend(connection, account_id, run, 1, 30 * CENT)
        found = await books_of(connection, account_id, "allowance", "allowance_used", "spent")
        assert found == [1_500 * CENT, 0, 30 * CENT]
        await holds.release(connection, account_id, run)
        found = await books_of(connection, account_id, "allowance", "granted", "held_allowance")
    # Two months were granted, less what was never used of the first.
    assert found == [1_500 * CENT, -1_530 * CENT, 0]
