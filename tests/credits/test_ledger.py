"""What the database guarantees: concurrency, privileges of the service's role, valid rows."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from rota.credits import holds, ledger, model
from rota.credits.model import RunId
from rota.credits.verify import problems
from rota.platform import ids
from rota.platform.db import Database
from tests.credits.world import ALLOWANCE_OF, CENT, new_account, spend, start_run
from tests.sizes import size

CLIENTS = 64
ATTEMPTS = size(2_000, 10_000)
CENTS = 1_000
# Holds that the balance covers.
COVERED = ATTEMPTS // 10

UNBALANCED_ENTRY = """
    INSERT INTO entries (account_id, id, kind, key, at, topup, outside)
    VALUES ($1, $2, 'top_up', 'made up', now(), 100, -99)
"""


async def test_of_many_concurrent_holds_exactly_the_covered_ones_succeed(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=COVERED)
    attempts = iter(range(ATTEMPTS))

    async def client() -> int:
        succeeded = 0
        for _ in attempts:
            async with books.write(account_id) as tx:
                run_id = RunId(ids.new_uuid(), 1)
                succeeded += await holds.hold(tx, run_id, CENT, ALLOWANCE_OF)
        return succeeded

    assert sum(await asyncio.gather(*[client() for _ in range(CLIENTS)])) == COVERED
    async with books.read(account_id) as tx:
        row = await tx.fetchrow(
            "SELECT topup, held_topup, entries FROM balances WHERE account_id = $1", account_id
        )
    assert dict(row) == {"topup": 0, "held_topup": COVERED * CENT, "entries": COVERED + 1}


async def test_the_books_agree_after_concurrent_runs(
    books: Database,
) -> None:
    account_id = await new_account(books, topup_cents=CENTS)

    async def client(number: int) -> None:
        for _ in range(6):
            async with books.write(account_id) as tx:
                run_id = await start_run(tx, 10 * CENT)
            for step in range(3):
                async with books.write(account_id) as tx:
                    await spend(tx, run_id, step, 1_000 * number + step)
            async with books.write(account_id) as tx:
                # The same lock as when a task ends.
                await tx.execute(
                    "SELECT 1 FROM account_heads WHERE account_id = $1 FOR UPDATE", account_id
                )
                await tx.execute(
                    "UPDATE tasks SET status = 'COMPLETED' WHERE account_id = $1 AND id = $2",
                    account_id,
                    run_id.task_id,
                )
                await holds.release(tx, run_id)

    await asyncio.gather(*[client(number) for number in range(16)])
    async with books.snapshot(account_id) as tx:
        assert await problems(tx) == []
        row = await tx.fetchrow(
            "SELECT topup, spent, held_topup FROM balances WHERE account_id = $1", account_id
        )
    spent = sum(6 * (3_000 * number + 3) for number in range(16))
    assert dict(row) == {"topup": CENTS * CENT - spent, "spent": spent, "held_topup": 0}


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
async def test_the_services_role_cannot_change_or_delete_entries(
    books: Database, forbidden: str
) -> None:
    account_id = await new_account(books, topup_cents=1)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
        async with books.write(account_id) as tx:
            await tx.execute(forbidden, account_id)


@pytest.mark.parametrize("table", ["entries", "balances", "holds", "usage_days", "customers"])
async def test_an_account_cannot_read_or_change_another_accounts_books(
    books: Database, table: str
) -> None:
    owner = await new_account(books, topup_cents=100)
    other = await new_account(books)
    async with books.write(owner) as tx:
        run = await start_run(tx, CENT)
        await spend(tx, run, 1, 50)
        await tx.execute("INSERT INTO customers VALUES ($1, 'cus_1')", owner)
    query = f"SELECT count(*) FROM {table} WHERE account_id = $1"
    async with books.read(owner) as tx:
        assert await tx.fetchval(query, owner) > 0
    async with books.write(other) as tx:
        assert await tx.fetchval(query, owner) == 0
        if table != "entries":
            changed = f"UPDATE {table} SET account_id = account_id WHERE account_id = $1"
            assert await tx.execute(changed, owner) == "UPDATE 0"


async def test_an_entry_for_another_account_is_refused(books: Database) -> None:
    owner, other = await new_account(books), await new_account(books)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        async with books.write(other) as tx:
            await tx.execute(UNBALANCED_ENTRY.replace("-99", "-100"), owner, ids.new_uuid())


async def test_an_entry_that_does_not_sum_to_zero_is_refused(books: Database) -> None:
    account_id = await new_account(books)
    with pytest.raises(asyncpg.CheckViolationError, match="balanced"):
        async with books.write(account_id) as tx:
            await tx.execute(UNBALANCED_ENTRY, account_id, ids.new_uuid())


async def test_a_second_charge_for_the_same_call_is_refused(books: Database) -> None:
    account_id = await new_account(books, topup_cents=100)
    async with books.write(account_id) as tx:
        run = await start_run(tx, CENT)
        await spend(tx, run, 1, 50)
    entry = model.Entry("charge", f"charge/{run}/1", topup=-50, spent=50)
    with pytest.raises(asyncpg.UniqueViolationError):
        async with books.write(account_id) as tx:
            await ledger.add_entry(tx, entry)


async def test_a_payment_that_is_reported_many_times_at_once_counts_once(books: Database) -> None:
    account_id = await new_account(books)

    async def report(reference: str) -> bool:
        async with books.write(account_id) as tx:
            return await ledger.top_up(tx, 500 * CENT, reference)

    added = await asyncio.gather(*[report(f"pi_{n % 2}") for n in range(32)])
    assert sum(added) == 2
    assert await _topup(books, account_id) == 1_000 * CENT


async def _topup(books: Database, account_id: UUID) -> int:
    async with books.read(account_id) as tx:
        topup_micros: int = await tx.fetchval(
            "SELECT topup FROM balances WHERE account_id = $1", account_id
        )
        return topup_micros
