"""Creates many tasks with one request.

Each transaction creates up to 100 tasks, so that a batch does not keep the account locked for long.
With an Idempotency-Key, each task has the stored response of its own. So a batch that was
interrupted can be sent again: tasks that exist are not created again.
"""

from rota.auth.caller import Caller
from rota.platform import json
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import ApiError
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.schema import SchemaChecks
from rota.tasks import creation, schemas
from rota.tasks.bodies import BatchTask, CreateTasks
from rota.tasks.creation import TaskCreation
from rota.tasks.errors import OutputSchemaUnusable, TooManySchemas
from rota.tasks.schemas import TaskResponse

PATH = "/api/tasks/batch"
PER_TRANSACTION = 100
TASKS_PER_REQUEST = 10
# A check of a schema can take seconds.
MAX_SCHEMAS = 10


def cost_of(body: CreateTasks) -> int:
    """How many requests a batch counts as."""
    return -(-len(body.tasks) // TASKS_PER_REQUEST)


class Batches:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        creation: TaskCreation,
        schema_checks: SchemaChecks,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._creation = creation
        self._schema_checks = schema_checks

    async def create(self, caller: Caller, body: CreateTasks, key: str | None) -> Outcome:
        refused = await self._unusable_schemas(caller, body)
        results: list[Outcome] = []
        while len(results) < len(body.tasks):
            async with self._db.write(caller.account_id, caller.user_id) as tx:
                results += await self._create_some(tx, caller, body, key, len(results), refused)
        return Outcome(
            200,
            b'{"results":[%s]}' % b",".join(result.body for result in results),
            replayed=all(result.replayed for result in results),
        )

    async def _unusable_schemas(
        self, caller: Caller, body: CreateTasks
    ) -> dict[int, OutputSchemaUnusable]:
        """The tasks whose schema cannot be used, by number."""
        numbers: dict[bytes, list[int]] = {}
        for number, task in enumerate(body.tasks):
            if task.output_schema is not None:
                numbers.setdefault(json.dumps(task.output_schema), []).append(number)
        if len(numbers) > MAX_SCHEMAS:
            raise TooManySchemas(MAX_SCHEMAS)
        refused: dict[int, OutputSchemaUnusable] = {}
        for same in numbers.values():
            try:
                await creation.check_schema(
                    self._schema_checks, caller.account_id, body.tasks[same[0]]
                )
            except OutputSchemaUnusable as error:
                refused |= dict.fromkeys(same, error)
        return refused

    async def _create_some(
        self,
        tx: AccountTransaction,
        caller: Caller,
        body: CreateTasks,
        key: str | None,
        first: int,
        refused: dict[int, OutputSchemaUnusable],
    ) -> list[Outcome]:
        """Creates the tasks of one transaction, beginning with number `first`."""
        end = min(first + PER_TRANSACTION, len(body.tasks))
        # The first transaction looks at all of them, so that a key that was used for another
        # request is refused before anything is created.
        looked_at = range(first, end if first else len(body.tasks))
        request = (f"POST {PATH}", body)
        # A batch that has begun does not fail because it was sent a second time meanwhile.
        found = await self._idempotency.stored_items(tx, key, request, looked_at, wait=first > 0)
        created: dict[int, TaskResponse] = {}
        for number in range(first, end):
            if number not in found:
                try:
                    if number in refused:
                        raise refused[number]
                    created[number] = await self._create(tx, caller, body.tasks[number])
                    found[number] = Outcome.success(201, created[number])
                except ApiError as error:
                    # Nothing was written for this task.
                    found[number] = Outcome.failure(error, PATH)
        await self._idempotency.store_items(tx, key, request, 201, created)
        return [found[number] for number in range(first, end)]

    async def _create(
        self, tx: AccountTransaction, caller: Caller, body: BatchTask
    ) -> TaskResponse:
        task = await creation.create_requested(
            tx, self._creation, body, caller.tier, deadline=body.deadline
        )
        return TaskResponse(task=schemas.Task.of(task))
