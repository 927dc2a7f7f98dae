"""What the database itself holds to: races, what the service's role may do, crooked rows."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from rota.credits import holds, ledger
from rota.credits.ledger import RunId
from rota.credits.verify import problems
from rota.platform import ids
from rota.platform.db import Database
from tests.credits.world import ALLOWANCE_OF, CENT, new_account, spend, start_run

CLIENTS = 64
ATTEMPTS = 10_000
CENTS = 1_000

CROOKED = """
    INSERT INTO entries (account_id, id, kind, key, at, topup, outside)
    VALUES ($1, $2, 'top_up', 'made up', now(), 100, -99)
"""


async def test_of_ten_thousand_holds_at_once_exactly_those_succeed_that_are_paid_for(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=CENTS)
    attempts = iter(range(ATTEMPTS))

    async def client() -> int:
        succeeded = 0
        for _ in attempts:
            async with books.write(account_id) as tx:
                owner = RunId(ids.new_uuid(), 1)
                succeeded += await holds.hold(tx, owner, CENT, ALLOWANCE_OF)
        return succeeded

    assert sum(await asyncio.gather(*(client() for _ in range(CLIENTS)))) == CENTS
    async with books.read(account_id) as tx:
        row = await tx.fetchrow(
            "SELECT topup, held_topup, entries FROM balances WHERE account_id = $1", account_id
        )
    assert tuple(row) == (0, CENTS * CENT, CENTS + 1)


async def test_runs_that_hold_spend_and_end_at_once_leave_books_that_agree(
    books: Database,
) -> None:
    account_id = await new_account(books, cents=CENTS)

    async def client(number: int) -> None:
        for _ in range(6):
            async with books.write(account_id) as tx:
                owner = await start_run(tx, 10 * CENT)
            for step in range(3):
                async with books.write(account_id) as tx:
                    await spend(tx, owner, step, 1_000 * number + step)
            async with books.write(account_id) as tx:
                # Others of the account wait meanwhile, as they do when tasks end.
                await tx.execute(
                    "SELECT 1 FROM account_heads WHERE account_id = $1 FOR UPDATE", account_id
                )
                await tx.execute(
                    "UPDATE tasks SET status = 'COMPLETED' WHERE account_id = $1 AND id = $2",
                    account_id,
                    owner.task_id,
                )
                await holds.release(tx, owner)

    await asyncio.gather(*(client(number) for number in range(16)))
    async with books.snapshot(account_id) as tx:
        assert await problems(tx) == []
        row = await tx.fetchrow(
            "SELECT topup, spent, held_topup FROM balances WHERE account_id = $1", account_id
        )
    spent = sum(6 * (3_000 * number + 3) for number in range(16))
    assert tuple(row) == (CENTS * CENT - spent, spent, 0)


@pytest.mark.parametrize(
    "forbidden",
    [
        "UPDATE entries SET topup = topup WHERE account_id = $1",
        "DELETE FROM entries WHERE account_id = $1",
        "DELETE FROM balances WHERE account_id = $1",
        "DELETE FROM holds WHERE account_id = $1",
        "DELETE FROM usage_days WHERE account_id = $1",
    ],
)
async def test_the_service_itself_cannot_rewrite_its_books(books: Database, forbidden: str) -> None:
    account_id = await new_account(books, cents=1)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
        async with books.write(account_id) as tx:
            await tx.execute(forbidden, account_id)


@pytest.mark.parametrize("table", ["entries", "balances", "holds", "usage_days", "customers"])
async def test_no_account_sees_or_touches_anothers_books(books: Database, table: str) -> None:
    owner = await new_account(books, cents=100)
    other = await new_account(books)
    async with books.write(owner) as tx:
        run = await start_run(tx, CENT)
        await spend(tx, run, 1, 50)
        await tx.execute("INSERT INTO customers VALUES ($1, 'cus_1')", owner)
    seen = f"SELECT count(*) FROM {table} WHERE account_id = $1"
    async with books.read(owner) as tx:
        assert await tx.fetchval(seen, owner) > 0
    async with books.write(other) as tx:
        assert await tx.fetchval(seen, owner) == 0
        if table != "entries":
            changed = f"UPDATE {table} SET account_id = account_id WHERE account_id = $1"
            assert await tx.execute(changed, owner) == "UPDATE 0"


async def test_an_entry_for_another_account_is_refused(books: Database) -> None:
    owner, other = await new_account(books), await new_account(books)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        async with books.write(other) as tx:
            await tx.execute(CROOKED.replace("-99", "-100"), owner, ids.new_uuid())


async def test_an_entry_that_does_not_sum_to_zero_is_refused(books: Database) -> None:
    account_id = await new_account(books)
    with pytest.raises(asyncpg.CheckViolationError, match="balanced"):
        async with books.write(account_id) as tx:
            await tx.execute(CROOKED, account_id, ids.new_uuid())


async def test_a_call_is_charged_once_even_if_it_is_written_down_twice(books: Database) -> None:
    account_id = await new_account(books, cents=100)
    async with books.write(account_id) as tx:
        run = await start_run(tx, CENT)
        await spend(tx, run, 1, 50)
    with pytest.raises(asyncpg.UniqueViolationError):
        async with books.write(account_id) as tx:
            await ledger.enter(
                tx,
                ledger.Entry("charge", f"charge/{run}/1", topup=-50, spent=50),
            )


async def test_a_payment_that_is_told_of_many_times_at_once_counts_once(books: Database) -> None:
    account_id = await new_account(books)

    async def tell(reference: str) -> bool:
        async with books.write(account_id) as tx:
            return await ledger.top_up(tx, 500 * CENT, reference)

    told = await asyncio.gather(*(tell(f"pi_{n % 2}") for n in range(32)))
    assert sum(told) == 2
    assert await _topup(books, account_id) == 1_000 * CENT


async def _topup(books: Database, account_id: UUID) -> int:
    async with books.read(account_id) as tx:
        micros: int = await tx.fetchval(
            "SELECT topup FROM balances WHERE account_id = $1", account_id
        )
        return micros
