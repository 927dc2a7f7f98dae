"""The SQL statements of the service, for benchmarks that send them without the service."""

from typing import Any
from uuid import UUID

from rota.platform import ids
from rota.platform.db import NO_USER, AccountTransaction
from rota.tasks import queries
from rota.tasks.model import Task


class Recorder:
    """A connection that records statements and does not run them."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[Any, ...]]] = []

    def tx(self, account_id: UUID) -> AccountTransaction:
        return AccountTransaction(self, account_id, NO_USER)

    async def execute(self, query: str, *args: object) -> str:
        self.statements.append((query, args))
        return ""

    async def executemany(self, query: str, args: Any) -> None:
        raise NotImplementedError

    async def fetch(self, query: str, *args: object) -> list[Any]:
        self.statements.append((query, args))
        return []

    async def fetchrow(self, query: str, *args: object) -> Any:
        self.statements.append((query, args))

    async def fetchval(self, query: str, *args: object) -> Any:
        self.statements.append((query, args))


def external_task(task_id: UUID, name: str = "Compare three suppliers") -> Task:
    """The task that `POST /api/tasks` creates from the body of the benchmark."""
    now = ids.time_of(task_id)
    return Task(
        id=task_id,
        status="PENDING",
        hosted=False,
        depth=0,
        run=1,
        agent=None,
        agent_version=None,
        budget_cents=None,
        project_id="project-1",
        parent_task_id=None,
        name=name,
        priority=1.0,
        created_at=now,
        updated_at=now,
        started_at=None,
        finished_at=None,
        description=None,
        input="Please compare their offers and recommend one.",
        output=None,
        actions=[],
        error=None,
        steps=0,
        input_tokens=0,
        output_tokens=0,
        cost_micros=0,
        inherited_approval=None,
    )


BODY = {
    "name": "Compare three suppliers",
    "input": "Please compare their offers and recommend one.",
    "projectId": "project-1",
    "priority": 1,
}


async def find_statement() -> str:
    recorder = Recorder()
    await queries.find(recorder.tx(UUID(int=0)), UUID(int=0))
    return recorder.statements[0][0]


class InsertStatement:
    """The text of `queries.insert`, and the position of each argument that changes."""

    def __init__(self, text: str, template: list[Any], account: UUID, user: UUID, task: Task):
        self.text = text
        self._template = template
        known = {account: "account", user: "user", task.id: "id", task.created_at: "at"}
        self._places = [
            (place, known[value])
            for place, value in enumerate(template)
            if isinstance(value, type(account) | type(task.created_at)) and value in known
        ]

    @classmethod
    async def take(cls) -> "InsertStatement":
        account, user = ids.new_uuid(), ids.new_uuid()
        task = external_task(ids.new_uuid())
        recorder = Recorder()
        data = {"status": "PENDING", "previousStatus": None, "by": ids.to_wire("user", user)}
        await queries.insert(recorder.tx(account), task, data, None, created_by=user)
        ((text, arguments),) = recorder.statements
        return cls(text, list(arguments), account, user, task)

    def arguments(self, account: UUID, user: UUID) -> list[Any]:
        task_id = ids.new_uuid()
        values = {"account": account, "user": user, "id": task_id, "at": ids.time_of(task_id)}
        arguments = self._template.copy()
        for place, name in self._places:
            arguments[place] = values[name]
        return arguments
