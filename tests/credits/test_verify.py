"""`rota admin ledger verify` finds every kind of damage, and nothing in consistent books."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import get_args
from uuid import UUID

import pytest
from typer.testing import CliRunner

from rota.cli import cli
from rota.credits import holds, ledger, model, verify
from rota.platform import ids
from rota.platform.db import NO_USER, AccountReader
from tests.credits.world import ALLOWANCE_OF, CENT, Shop, end_run, new_account, spend, start_run


@dataclass
class ConsistentAccount:
    """An account with an ended run, a late call, an open run and its subtask.

    A refund and a dispute of its payment came back in part.
    """

    account_id: UUID


@pytest.fixture
async def consistent(shop: Shop) -> AsyncIterator[ConsistentAccount]:
    account_id = await new_account(shop.db, "standard", topup_cents=1_000)
    async with shop.db.write(account_id) as tx:
        ended = await start_run(tx, 100 * CENT)
        await spend(tx, ended, 1, 12_345)
        await spend(tx, ended, 2, 0)
        await end_run(tx, ended)
        await spend(tx, ended, 3, 777)
        running = await start_run(tx, 2_000 * CENT)
        await spend(tx, running, 1, 5_000)
        child = await start_run(tx, 0)
        await tx.execute(
            "UPDATE holds SET parent_task_id = $3, parent_run = 1, budget = 100"
            " WHERE account_id = $1 AND task_id = $2",
            account_id,
            child.task_id,
            running.task_id,
        )
        await holds.draw(tx, child, 70, ALLOWANCE_OF)
        for kind in get_args(model.Return):
            for total in (300, 100):
                await ledger.set_returned(tx, kind, total, "pi_first")
    yield ConsistentAccount(account_id)
    async with shop.db.write(account_id) as tx:
        for run in (child, running):
            await end_run(tx, run)


CHAIN = "the balance after an entry is not where the next entry starts"
OPEN = "account_id = $1 AND open AND parent_task_id IS NULL"
DAMAGE = {
    "a book": (
        "UPDATE balances SET spent = spent + 1 WHERE account_id = $1",
        {"the balance is not the sum of its entries"},
    ),
    "the count of entries": (
        "UPDATE balances SET entries = entries + 1 WHERE account_id = $1",
        {"the balance is not the sum of its entries"},
    ),
    "a lost entry": (
        "DELETE FROM entries WHERE account_id = $1 AND kind = 'top_up'",
        {
            CHAIN,
            "the balance is not the sum of its entries",
            "a payment is not entered exactly once",
        },
    ),
    "a lost refund": (
        "DELETE FROM entries WHERE account_id = $1 AND kind = 'refund'",
        {
            CHAIN,
            "the balance is not the sum of its entries",
            "more came back from refunds than was refunded",
        },
    ),
    "a lost dispute": (
        "DELETE FROM entries WHERE account_id = $1 AND kind = 'dispute'",
        {
            CHAIN,
            "the balance is not the sum of its entries",
            "more came back from disputes than was disputed",
        },
    ),
    "a lost balance": (
        "DELETE FROM balances WHERE account_id = $1",
        {"the account has no balance"},
    ),
    "the amount of a hold": (
        f"UPDATE holds SET topup = topup + 1 WHERE {OPEN}",
        {"the held part of the balance is not the sum of open holds"},
    ),
    "the used allowance": (
        "UPDATE balances SET allowance_used = allowance_used + 1 WHERE account_id = $1",
        {"the month's allowance is not the sum of its remaining, held and used parts"},
    ),
    "a task that ended without a release": (
        "UPDATE tasks SET status = 'FAILED' WHERE account_id = $1 AND status = 'PENDING'",
        {"a hold is open although its run has ended"},
    ),
    "a task in another run": (
        "UPDATE tasks SET run = 2 WHERE account_id = $1 AND status = 'PENDING'",
        {"a hold is open although its run has ended", "a run has no open hold"},
    ),
    "a lost task": (
        "DELETE FROM tasks WHERE account_id = $1 AND status = 'PENDING'",
        {"a hold is open although its run has ended"},
    ),
    "a hold closed without a release": (
        "UPDATE holds SET open = false WHERE account_id = $1 AND parent_task_id IS NOT NULL",
        {
            "a run has no open hold",
            "the held part of the balance is not the sum of open holds",
            "the month's allowance is not the sum of its remaining, held and used parts",
        },
    ),
    "the charged amount of a hold": (
        f"UPDATE holds SET charged = charged + 1 WHERE {OPEN}",
        {"the charged amount of a hold is not the sum of its charges"},
    ),
    "a step's cost": (
        "UPDATE steps SET cost_micros = cost_micros + 1 WHERE account_id = $1 AND step = 3",
        {"a model call is not charged exactly once at its cost"},
    ),
    "a step without a charge": (
        "UPDATE steps SET cost_micros = 1 WHERE account_id = $1 AND step = 2",
        {"a model call is not charged exactly once at its cost"},
    ),
    "a charge without its step": (
        "DELETE FROM steps WHERE account_id = $1 AND step = 3",
        {"a model call is not charged exactly once at its cost"},
    ),
    "a step charged twice": (
        """
        INSERT INTO entries (account_id, id, kind, key, at, task_id, run, step, model, cost)
        SELECT account_id, gen_random_uuid(), kind, 'again', at, task_id, run, step, model, cost
        FROM entries WHERE account_id = $1 AND step = 3
        """,
        {
            "a model call is not charged exactly once at its cost",
            "the balance is not the sum of its entries",
        },
    ),
    "a day's usage": (
        "UPDATE usage_days SET spent = spent + 1 WHERE account_id = $1",
        {"a day's usage is not the sum of its charges"},
    ),
    "the balance after a hold": (
        "UPDATE entries SET available_after = available_after + 1"
        " WHERE account_id = $1 AND key IN"
        " (SELECT min(key) FROM entries WHERE account_id = $1 AND kind = 'hold')",
        {CHAIN},
    ),
    "the balance after a charge": (
        "UPDATE entries SET available_after = available_after + 1"
        " WHERE account_id = $1 AND step = 1",
        {CHAIN},
    ),
    "usage of another model": (
        "UPDATE usage_days SET model = 'other' WHERE account_id = $1",
        {"a day's usage is not the sum of its charges"},
    ),
}


async def test_consistent_books_have_no_problems(shop: Shop, consistent: ConsistentAccount) -> None:
    async with shop.db.snapshot(consistent.account_id) as tx:
        assert await verify.problems(tx) == []


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_found(shop: Shop, consistent: ConsistentAccount, damage: str) -> None:
    statement, expected = DAMAGE[damage]
    async with shop.service.owner() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statement, consistent.account_id)
        found = await verify.problems(AccountReader(connection, consistent.account_id, NO_USER))
        await transaction.rollback()
    assert {each.description for each in found} == expected
    assert all(each.expected != each.actual for each in found)


async def test_the_command_prints_the_differences_and_exits_with_1(
    shop: Shop, consistent: ConsistentAccount
) -> None:
    runner = CliRunner()
    environment = {
        "ROTA_DATABASE_URL": shop.service.database_url,
        "ROTA_ENV": "test",
        "COLUMNS": "250",
    }
    account = ids.to_wire("acct", consistent.account_id)

    async def run(*more: str) -> tuple[int, str]:
        result = await asyncio.to_thread(
            runner.invoke, cli, ["admin", "ledger", "verify", *more], env=environment
        )
        return result.exit_code, result.output

    assert await run("--account", account) == (0, "1 account checked, no differences.\n")
    assert (await run())[0] == 0
    statement = "UPDATE balances SET spent = spent + $2 WHERE account_id = $1"
    async with shop.service.owner() as connection:
        await connection.execute(statement, consistent.account_id, 7)
        code, output = await run()
        await connection.execute(statement, consistent.account_id, -7)
    assert code == 1
    assert account in output
    assert "the balance is not the sum of its entries" in output
    assert "1 difference." in output
    unknown = ids.to_wire("acct", ids.new_uuid())
    assert await run("--account", unknown) == (1, f"Account {unknown} not found.\n")
