"""Holds, charges and releases, case by case."""

from datetime import timedelta
from typing import Any

import pytest

from rota.credits import holds, ledger, queries, verify
from rota.credits.allowance import refresh
from rota.credits.model import RunId
from rota.platform import clock, ids
from rota.platform.db import AccountTransaction, Database
from tests.credits.world import ALLOWANCE_OF, CENT, new_account, spend, start_run


async def balance_of(tx: AccountTransaction, *names: str) -> list[Any]:
    row = await tx.fetchrow("SELECT * FROM balances WHERE account_id = $1", tx.account_id)
    return [row[name] for name in names]


async def start_subtask(
    tx: AccountTransaction, parent: RunId, budget_micros: int, drawn_micros: int
) -> RunId:
    run_id = RunId(ids.new_uuid(), 1)
    assert await holds.hold_under(tx, run_id, parent, budget_micros)
    await holds.draw(tx, run_id, drawn_micros, ALLOWANCE_OF)
    return run_id


async def test_a_hold_uses_the_allowance_first_and_then_the_top_up(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard", topup_cents=1_000)
    async with books.write(account_id) as tx:
        await start_run(tx, 1_600 * CENT)
        found = await balance_of(tx, "allowance", "topup", "held_allowance", "held_topup")
    assert found == [0, 900 * CENT, 1_500 * CENT, 100 * CENT]


@pytest.mark.parametrize(("tier", "enough"), [("standard", False), ("basic", True)])
async def test_without_overflow_only_accounts_without_an_allowance_use_their_top_up(
    books: Database, tier: str, enough: bool
) -> None:
    account_id = await new_account(books, tier, topup_cents=2_000)
    async with books.write(account_id) as tx:
        await queries.set_overflow(tx, False)
        run_id = RunId(ids.new_uuid(), 1)
        held = await holds.hold(tx, run_id, 1_600 * CENT, ALLOWANCE_OF)
    assert held == enough


async def test_the_rest_of_a_subtasks_hold_returns_to_the_nearest_open_parent(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        middle = await start_subtask(tx, top, 40 * CENT, 30 * CENT)
        lowest = await start_subtask(tx, middle, 20 * CENT, 20 * CENT)
        assert await holds.left(tx, top) == 20 * CENT
        await holds.release(tx, middle)
        assert await holds.left(tx, top) == 30 * CENT
        await holds.release(tx, lowest)
        assert await holds.left(tx, top) == 50 * CENT
        await holds.release(tx, top)
        found = await balance_of(tx, "topup", "held_topup")
    assert found == [100 * CENT, 0]


async def test_a_subtask_draws_through_its_parents_up_to_its_own_budget(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        middle = await start_subtask(tx, top, 40 * CENT, 0)
        lowest = await start_subtask(tx, middle, 30 * CENT, 25 * CENT)
        assert await holds.left(tx, lowest) == 25 * CENT
        await holds.draw(tx, lowest, 25 * CENT, ALLOWANCE_OF)
        assert await holds.left(tx, lowest) == 30 * CENT
        assert await holds.left(tx, middle) == 0
        assert await holds.left(tx, top) == 20 * CENT
        await holds.release(tx, top)
        assert not await holds.hold_under(tx, RunId(ids.new_uuid(), 1), top, CENT)


async def test_the_account_pays_for_a_subtask_after_its_parents_hold_is_closed(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        middle = await start_subtask(tx, top, 40 * CENT, 10 * CENT)
        lowest = await start_subtask(tx, middle, 30 * CENT, 0)
        assert await holds.has_open_parent(tx, middle)
        await holds.release(tx, top)
        assert not await holds.has_open_parent(tx, middle)
        # The money for the lowest comes through the middle, which takes the rest of its budget.
        await holds.draw(tx, lowest, 25 * CENT, ALLOWANCE_OF)
        assert await holds.left(tx, lowest) == 25 * CENT
        assert await holds.left(tx, middle) == 15 * CENT
        assert await balance_of(tx, "topup", "held_topup") == [60 * CENT, 40 * CENT]
        # It has had its whole budget, so it gets no more.
        await holds.draw(tx, middle, CENT, ALLOWANCE_OF)
        assert await holds.left(tx, middle) == 15 * CENT
        await holds.release(tx, lowest)
        await holds.release(tx, middle)
        assert await balance_of(tx, "topup", "held_topup") == [100 * CENT, 0]


async def test_a_subtask_is_detached_only_if_the_balance_covers_what_it_needs(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 95 * CENT)
        subtask = await start_subtask(tx, top, 40 * CENT, 10 * CENT)
        assert not await holds.detach(tx, subtask, 6 * CENT, ALLOWANCE_OF)
        assert await holds.has_open_parent(tx, subtask)
        # It gets what there is, up to its budget.
        assert await holds.detach(tx, subtask, 4 * CENT, ALLOWANCE_OF)
        assert not await holds.has_open_parent(tx, subtask)
        assert await holds.left(tx, subtask) == 15 * CENT
        await holds.release(tx, subtask)
        assert await holds.left(tx, top) == 85 * CENT
        assert await balance_of(tx, "topup", "held_topup") == [15 * CENT, 85 * CENT]
        # With an empty balance, the parent's end still detaches it.
        await start_run(tx, 15 * CENT)
        other = await start_subtask(tx, top, 40 * CENT, 10 * CENT)
        await spend(tx, top, 1, 75 * CENT)
        await holds.release(tx, top)
        await holds.draw(tx, other, CENT, ALLOWANCE_OF)
        assert await holds.left(tx, other) == 10 * CENT


async def test_a_subtask_is_detached_if_the_balance_covers_the_rest_of_its_budget(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 95 * CENT)
        # The call could cost more than the budget, so the account pays only the rest of it.
        subtask = await start_subtask(tx, top, 14 * CENT, 10 * CENT)
        assert await holds.detach(tx, subtask, 50 * CENT, ALLOWANCE_OF)
        assert await holds.left(tx, subtask) == 14 * CENT
        assert await balance_of(tx, "topup", "held_topup") == [CENT, 99 * CENT]


async def test_a_detached_hold_does_not_mix_the_allowances_of_two_months(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard", topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        subtask = await start_subtask(tx, top, 40 * CENT, 10 * CENT)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        await holds.release(tx, top)
        await holds.draw(tx, subtask, CENT, ALLOWANCE_OF)
        row = await tx.fetchrow(
            "SELECT allowance, topup FROM holds WHERE account_id = $1 AND task_id = $2",
            account_id,
            subtask.task_id,
        )
        assert (row["allowance"], row["topup"]) == (10 * CENT, 30 * CENT)
        await holds.release(tx, subtask)
    async with books.snapshot(account_id) as reader:
        found = await verify.problems(reader)
    # The task of the parent's run has not ended here, only its hold.
    assert {problem.description for problem in found} == {"a run has no open hold"}


async def test_a_subtask_without_allowance_uses_that_of_a_later_month(
    books: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_id = await new_account(books, "standard", topup_cents=100)
    async with books.write(account_id) as tx:
        top = await start_run(tx, 50 * CENT)
        middle = await start_subtask(tx, top, 40 * CENT, 0)
        lowest = await start_subtask(tx, middle, 30 * CENT, 0)
        await spend(tx, top, 1, 20 * CENT)
        await holds.release(tx, top)
        # Nothing else starts the later month.
        later = clock.now() + timedelta(days=32)
        monkeypatch.setattr(clock, "now", lambda: later)
        # The money for the lowest comes through the middle.
        await holds.draw(tx, lowest, 10 * CENT, ALLOWANCE_OF)
        assert await balance_of(tx, "allowance", "topup") == [1_460 * CENT, 100 * CENT]
        await spend(tx, lowest, 1, 10 * CENT)
        await holds.release(tx, lowest)
        await holds.release(tx, middle)
        found = await balance_of(tx, "allowance", "allowance_used", "held_allowance", "topup")
    assert found == [1_490 * CENT, 10 * CENT, 0, 100 * CENT]


async def test_a_late_call_is_paid_from_the_money_that_its_run_released(books: Database) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        run = await start_run(tx, 60 * CENT)
        await holds.release(tx, run)
        await spend(tx, run, 1, 50 * CENT)
        # The second call is charged only for the rest of that money.
        await spend(tx, run, 2, 50 * CENT)
        found = await balance_of(tx, "topup", "spent", "owed")
    assert found == [40 * CENT, 60 * CENT, 0]


async def test_a_late_call_of_a_past_month_is_paid_from_the_allowance_that_expired(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard", topup_cents=100)
    async with books.write(account_id) as tx:
        run = await start_run(tx, 1_530 * CENT)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        await holds.release(tx, run)
        expired = await balance_of(tx, "allowance", "topup", "granted")
        assert expired == [1_500 * CENT, 100 * CENT, -1_500 * CENT]
        await spend(tx, run, 1, 100 * CENT)
        found = await balance_of(tx, "allowance", "topup", "owed", "spent", "granted")
        assert found == [1_500 * CENT, 100 * CENT, 0, 100 * CENT, -1_600 * CENT]
        # The rest of the hold was 1,400 cents of that allowance and 30 cents of top-up.
        await spend(tx, run, 2, 1_500 * CENT)
        found = await balance_of(tx, "allowance", "allowance_used", "topup", "owed", "spent")
    assert found == [1_470 * CENT, 30 * CENT, 100 * CENT, 0, 1_530 * CENT]


async def test_a_late_call_does_not_get_back_money_that_expired_after_its_run(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        late = await start_run(tx, 60 * CENT)
        await holds.release(tx, late)
        # Another run spends the released money before the month ends.
        other = await start_run(tx, 1_500 * CENT)
        await spend(tx, other, 1, 1_500 * CENT)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        await spend(tx, late, 1, 50 * CENT)
        found = await balance_of(tx, "allowance", "granted")
    assert found == [1_450 * CENT, -3_000 * CENT]


async def test_a_late_call_whose_released_money_is_spent_is_owed(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        late = await start_run(tx, 60 * CENT)
        await holds.release(tx, late)
        other = await start_run(tx, 90 * CENT)
        await spend(tx, late, 1, 50 * CENT)
        assert await balance_of(tx, "topup", "owed") == [0, -40 * CENT]
        # The next release pays a part of it, and the next payment the rest.
        await spend(tx, other, 1, 75 * CENT)
        await holds.release(tx, other)
        assert await balance_of(tx, "topup", "owed") == [0, -25 * CENT]
        await ledger.top_up(tx, 30 * CENT, "pi_second")
        assert await balance_of(tx, "topup", "owed") == [5 * CENT, 0]


async def test_without_overflow_a_late_call_does_not_use_the_top_up(books: Database) -> None:
    account_id = await new_account(books, "standard", topup_cents=100)
    async with books.write(account_id) as tx:
        await queries.set_overflow(tx, False)
        late = await start_run(tx, 60 * CENT)
        await holds.release(tx, late)
        await start_run(tx, 1_490 * CENT)
        await spend(tx, late, 1, 50 * CENT)
        found = await balance_of(tx, "allowance", "topup", "owed")
    assert found == [0, 100 * CENT, -40 * CENT]


async def test_the_depleted_event_is_sent_once_until_money_comes_in(books: Database) -> None:
    account_id = await new_account(books, topup_cents=100)
    event_counts: list[int] = []
    async with books.write(account_id) as tx:
        for payment in ("pi_2", "pi_3"):
            for _ in range(2):
                run = await start_run(tx, 100 * CENT if not event_counts else 0)
                await spend(tx, run, 1, 100 * CENT)
                await holds.release(tx, run)
                event_counts.append(
                    await tx.fetchval(
                        "SELECT count(*) FROM events WHERE account_id = $1"
                        " AND type = 'credits.depleted'",
                        account_id,
                    )
                )
            await ledger.top_up(tx, CENT, payment)
            await ledger.set_returned(tx, "refund", CENT, payment)
    assert event_counts == [1, 1, 2, 2]


async def test_a_late_call_that_uses_the_last_money_sends_the_depleted_event(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        late = await start_run(tx, 100 * CENT)
        await holds.release(tx, late)
        assert not (await balance_of(tx, "told_depleted"))[0]
        await spend(tx, late, 1, 100 * CENT)
        events = "SELECT count(*) FROM events WHERE account_id = $1 AND type = 'credits.depleted'"
        assert await tx.fetchval(events, account_id) == 1


async def start_run_with_debt(tx: AccountTransaction) -> RunId:
    """A run that holds the whole allowance, in an account that owes 50 cents."""
    late = await start_run(tx, 60 * CENT)
    await holds.release(tx, late)
    other = await start_run(tx, 1_500 * CENT)
    await spend(tx, late, 1, 50 * CENT)
    assert await balance_of(tx, "allowance", "owed") == [0, -50 * CENT]
    return other


async def test_owed_money_that_the_allowance_pays_counts_as_used_allowance(books: Database) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        other = await start_run_with_debt(tx)
        await holds.release(tx, other)
        found = await balance_of(tx, "allowance", "owed", "allowance_used")
    assert found == [1_450 * CENT, 0, 50 * CENT]


async def test_the_next_months_allowance_pays_owed_money_first(books: Database) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        await start_run_with_debt(tx)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        found = await balance_of(tx, "allowance", "owed", "allowance_used")
    assert found == [1_450 * CENT, 0, 50 * CENT]


async def test_a_run_past_the_end_of_the_month_uses_and_releases_the_old_allowance(
    books: Database,
) -> None:
    account_id = await new_account(books, "standard")
    async with books.write(account_id) as tx:
        run = await start_run(tx, 100 * CENT)
        await refresh(tx, ALLOWANCE_OF, clock.now() + timedelta(days=32))
        await spend(tx, run, 1, 30 * CENT)
        found = await balance_of(tx, "allowance", "allowance_used", "spent")
        assert found == [1_500 * CENT, 0, 30 * CENT]
        await holds.release(tx, run)
        found = await balance_of(tx, "allowance", "granted", "held_allowance")
    # Two months were granted, minus the unused part of the first.
    assert found == [1_500 * CENT, -1_530 * CENT, 0]
