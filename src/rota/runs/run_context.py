"""The run that an order names, as the database has it now."""

import contextlib
from collections.abc import AsyncIterator
from uuid import UUID

from rota.agents import queries as agents
from rota.agents.model import AgentVersion
from rota.platform import ids
from rota.platform.db import AccountTransaction, Database, ReadConnection
from rota.runs.contracts import RunInput
from rota.tasks import queries
from rota.tasks.model import Task


class RunContext:
    def __init__(self, db: Database) -> None:
        self.db = db
        self._agents: dict[tuple[str, int], AgentVersion] = {}

    @contextlib.asynccontextmanager
    async def locked(
        self, order: RunInput
    ) -> AsyncIterator[tuple[AccountTransaction, Task | None]]:
        """A transaction that locks the task. The task is None when its current run is another."""
        account_id, task_id = ids_of(order)
        async with self.db.write(account_id) as tx:
            task = await queries.find_for_change(tx, task_id)
            yield tx, task if task and task.run == order.run else None

    async def agent(self, connection: ReadConnection, task: Task) -> AgentVersion:
        assert task.agent is not None
        assert task.agent_version is not None
        key = (task.agent, task.agent_version)
        if key not in self._agents:
            # A version never changes, so it is read once.
            agent = await agents.find_version(connection, *key)
            assert agent is not None
            self._agents[key] = agent
        return self._agents[key]


def ids_of(order: RunInput) -> tuple[UUID, UUID]:
    account_id = ids.from_wire("acct", order.account_id)
    task_id = ids.from_wire("task", order.task_id)
    assert account_id is not None
    assert task_id is not None
    return account_id, task_id
