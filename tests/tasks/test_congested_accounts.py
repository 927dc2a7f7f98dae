"""An account without a free database connection does not stop the queues of others."""

from contextlib import AsyncExitStack

import pytest

from rota.composition import Composition
from rota.platform import connection_shares
from rota.tasks import places
from tests.service import Service
from tests.tasks.world import AGENT, create, newcomer, uuid_of


async def test_an_account_without_a_free_connection_does_not_stop_the_queues_of_others(
    board_a: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [await newcomer(board_a) for _ in range(3)]
    async with board_a.owner() as connection:
        for person in people:
            await connection.execute(
                """
                INSERT INTO places (account_id, task_id, agent, held, started, priority)
                VALUES ($1, $2, $3, false, false, 0)
                """,
                person.user_id,
                uuid_of(await create(person, agent=AGENT)),
                AGENT,
            )
    # The transaction over the share is refused at once.
    monkeypatch.setattr(connection_shares, "MAX_WAITING", 0)
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(parts.db.read(people[1].user_id))
        await places.admit_all(parts.db)
    async with board_a.owner() as connection:
        admitted = [
            await connection.fetchval(
                "SELECT held FROM places WHERE account_id = $1", person.user_id
            )
            for person in people
        ]
    assert admitted == [True, False, True]
