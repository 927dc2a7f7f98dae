"""Creating subtasks for runs: who owns them, and who pays for them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.composition import Composition
from rota.credits.refusals import InsufficientCredits
from rota.platform.db import AccountTransaction
from rota.tasks import queries
from rota.tasks.creation import NewTask, TaskCreation
from rota.tasks.model import Task
from tests.service import Service
from tests.tasks.world import AGENT, create, newcomer, picture, uuid_of


@pytest.fixture
async def parts(board_a: Service) -> AsyncIterator[Composition]:
    async with Composition(board_a.settings, pool_size=2) as parts:
        yield parts


async def create_subtask(
    tx: AccountTransaction, creation: TaskCreation, parent: dict[str, Any]
) -> Task:
    """Creates a subtask as a delegating run does."""
    above = await queries.get_for_change(tx, uuid_of(parent))
    agent = await creation.find_agent(tx, AGENT, "basic")
    owner = await queries.created_by(tx, above.id)
    return await creation.create(
        tx, NewTask("A part", agent=agent, parent=above), "basic", created_by=owner
    )


async def holds_of(service: Service, task: Task) -> list[tuple[Any, int]]:
    async with service.owner() as connection:
        rows = await connection.fetch(
            "SELECT parent_task_id, allowance + topup AS micros FROM holds WHERE task_id = $1",
            task.id,
        )
    return [(row["parent_task_id"], row["micros"]) for row in rows]


async def test_a_subtask_of_a_run_belongs_to_the_parents_owner_and_uses_the_parents_hold(
    board_a: Service, parts: Composition
) -> None:
    person = await newcomer(board_a)
    parent = await create(person, agent=AGENT)
    async with parts.db.write(person.user_id) as tx:
        subtask = await create_subtask(tx, parts.task_creation, parent)
    assert await holds_of(board_a, subtask) == [(uuid_of(parent), 0)]
    async with board_a.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert [row["created_by"] for row in seen["tasks"]] == [person.user_id] * 2
    assert [row["kind"] for row in seen["outbox"]] == ["run.start"] * 2


async def test_a_subtask_whose_parent_has_no_open_hold_is_paid_from_the_balance(
    board_a: Service, parts: Composition
) -> None:
    person = await newcomer(board_a)
    parent = await create(person, agent=AGENT)
    async with board_a.owner() as connection:
        await connection.execute(
            "UPDATE holds SET open = false WHERE task_id = $1", uuid_of(parent)
        )
    async with parts.db.write(person.user_id) as tx:
        subtask = await create_subtask(tx, parts.task_creation, parent)
    [(above, micros)] = await holds_of(board_a, subtask)
    assert above is None
    assert micros > 0


async def test_a_subtask_that_cannot_be_paid_raises_before_anything_is_written(
    board_a: Service, parts: Composition
) -> None:
    person = await newcomer(board_a)
    parent = await create(person, agent=AGENT)
    async with board_a.owner() as connection:
        await connection.execute(
            "UPDATE holds SET open = false WHERE task_id = $1", uuid_of(parent)
        )
        await connection.execute(
            "UPDATE balances SET allowance = 0, topup = 0 WHERE account_id = $1", person.user_id
        )
        before = await picture(connection, person.user_id)
        # The transaction commits, so anything written before the refusal would stay.
        async with parts.db.write(person.user_id) as tx:
            with pytest.raises(InsufficientCredits, match="budget"):
                await create_subtask(tx, parts.task_creation, parent)
        assert await picture(connection, person.user_id) == before
