"""What a subtask draws for its next model call."""

from dataclasses import replace
from typing import Any, cast

import pytest

from rota.credits import holds
from rota.platform import ids
from rota.platform.db import Database
from rota.runs.call_budget import CallBudgets, ModelCallInput
from rota.runs.run_context import FencedOut, RunContext
from rota.tasks import queries as tasks
from tests.credits.world import ALLOWANCE_OF, CENT, new_account, start_run
from tests.load.statements import external_task


async def start_subtask(db: Database) -> ModelCallInput:
    """A running subtask with a budget of 40 cents. Its parent waits and holds 50 cents."""
    account_id = await new_account(db, topup_cents=100)
    async with db.write(account_id) as tx:
        parent = await start_run(tx, 50 * CENT)
        task = replace(
            external_task(ids.new_uuid()),
            hosted=True,
            status="RUNNING",
            parent_task_id=parent.task_id,
        )
        await tasks.insert(tx, task, {}, None, created_by=account_id)
        assert await holds.hold_under(tx, task.run_id, parent, 40 * CENT)
    agent = cast(Any, None)
    return ModelCallInput(account_id, task, agent, [], 0, False, False, 0)


async def held(db: Database, start: ModelCallInput) -> int:
    async with db.read(start.account_id) as tx:
        return await holds.left(tx, start.task.run_id)


async def test_a_request_that_is_sent_again_draws_only_what_is_still_missing(
    books: Database,
) -> None:
    start = await start_subtask(books)
    budgets = CallBudgets(RunContext(books), ALLOWANCE_OF)
    assert await budgets._draw(start, 10 * CENT) == 10 * CENT
    # The provider refused the request, so a shorter one is sent.
    assert await budgets._draw(start, 8 * CENT) == 10 * CENT
    assert await budgets._draw(start, 12 * CENT) == 12 * CENT
    assert await held(books, start) == 12 * CENT


@pytest.mark.parametrize(
    ("changed", "change"),
    [
        ("subtask", "status = 'CANCELLED'"),
        ("subtask", "status = 'PENDING', run = 2"),
        ("subtask", "fence = fence + 1"),
        # The subtask is cancelled a moment later.
        ("parent", "status = 'CANCELLED'"),
    ],
)
async def test_a_run_that_was_lost_draws_nothing(
    books: Database, changed: str, change: str
) -> None:
    start = await start_subtask(books)
    task_id = start.task.id if changed == "subtask" else start.task.parent_task_id
    async with books.write(start.account_id) as tx:
        await tx.execute(
            f"UPDATE tasks SET {change} WHERE account_id = $1 AND id = $2", tx.account_id, task_id
        )
        tx.record("test.changed", {})
    with pytest.raises(FencedOut):
        await CallBudgets(RunContext(books), ALLOWANCE_OF)._draw(start, 10 * CENT)
    assert await held(books, start) == 0
