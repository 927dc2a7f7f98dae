"""What clients do with tasks: create, list, read, change and retry them."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from rota.auth.caller import Caller
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.schema import SchemaChecks
from rota.tasks import (
    cancellation,
    changes,
    creation,
    gates,
    list_queries,
    places,
    queries,
    quotes,
    retrying,
    review_list_queries,
    review_reading,
    schemas,
    seals,
    shaping,
    transitions,
)
from rota.tasks.bodies import CreateTask, PatchTask
from rota.tasks.creation import TaskCreation
from rota.tasks.list_queries import Filter
from rota.tasks.model import ListedTask, Task
from rota.tasks.pages import PAGE_BYTES
from rota.tasks.quotes import Quote
from rota.tasks.review_reading import TaskReviews
from rota.tasks.schemas import TaskResponse
from rota.tasks.states import Gate, Trigger


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task with its pending review, and until when the caller has put it off."""

    found: TaskReviews
    snoozed_until: datetime | None
    # Whether something is left out, because the page would have been too large.
    truncated: bool


class Tasks:
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

    async def create(self, caller: Caller, body: CreateTask, key: str | None) -> Outcome:
        await creation.check_schema(self._schema_checks, caller.account_id, body)
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> TaskResponse:
                task = await creation.create_requested(
                    tx, self._creation, body, caller.tier, deadline=body.deadline
                )
                return TaskResponse(task=schemas.Task.of(task))

            return await self._idempotency.once(tx, key, ("POST /api/tasks", body), 201, work)

    async def quote(self, caller: Caller, body: CreateTask) -> Quote:
        """What the task can cost and use. Nothing is written, and no key is claimed."""
        await creation.check_schema(self._schema_checks, caller.account_id, body)
        await self._creation.bring_allowance_up_to_date(self._db, caller.account_id)
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            new = await creation.new_task(
                tx, self._creation, body, caller.tier, queries.find, deadline=body.deadline
            )
            return await quotes.quote(tx, self._creation, new)

    async def page(
        self, caller: Caller, filters: Filter, limit: int, offset: int
    ) -> tuple[list[ListedTask], int]:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            return await list_queries.page(tx, filters, limit, offset)

    async def next_page(
        self, caller: Caller, filters: Filter, limit: int
    ) -> tuple[list[ListedTask], int]:
        """As `page`, after the task that the filter names instead of an offset."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            return await list_queries.next_page(tx, filters, limit)

    async def waiting(
        self, caller: Caller, agent: str | None, gate: Gate | None, limit: int, offset: int
    ) -> tuple[list[Waiting], int]:
        """The tasks that wait for a person, longest wait first, each with its review."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            found, total = await list_queries.waiting(tx, agent, gate, limit, offset)
            tasks = await list_queries.by_ids(tx, found, PAGE_BYTES // 2)
            pending = await review_list_queries.listed(tx, found, PAGE_BYTES // 2)
            snoozes = await review_list_queries.snoozes(tx, pending, clock.now())
            definitions = await review_reading.definitions_of(tx, list(pending.values()))
            second_persons = await shaping.second_persons(tx, pending)
        return [
            Waiting(
                TaskReviews(task, [pending[task.id]], definitions, second_persons.get(task.id)),
                snoozes.get(task.id),
                truncated=pending[task.id].truncated or bool(task.truncated),
            )
            for task in tasks
        ], total

    async def get(self, caller: Caller, task_id: UUID | None) -> Task:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await places.with_position(tx, await queries.get(tx, task_id))

    async def patch(self, caller: Caller, task_id: UUID | None, body: PatchTask) -> Task:
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            before = await queries.get_for_change(tx, task_id)
            after = await changes.patched(tx, before, body)
            if after != before:
                after = replace(after, updated_at=clock.now())
                await transitions.update(tx, before, after)
                if shaping.is_edit(before, after):
                    await shaping.record(tx, before.id, "edited")
            if after.limited:
                after = await places.set_priority(tx, after)
            if after.deadline != before.deadline:
                await transitions.set_deadline(tx, after)
            if body.status is None or body.status == before.status:
                waits = after.status == "WAITING_APPROVAL"
                if changes.texts(after) != changes.texts(before) and waits:
                    await gates.replace_review(tx, after, seals.external(after))
                return after
            if body.status == "CANCELLED":
                return await cancellation.cancel(tx, after, after, Trigger.CANCEL)
            after = await transitions.apply(tx, after, after, body.status, Trigger.PATCH)
            if after.status == "WAITING_APPROVAL":
                await self._creation.open_first_gate(tx, after, None)
        return after

    async def retry(
        self, caller: Caller, task_id: UUID | None, start_at: str, key: str | None
    ) -> Outcome:
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> TaskResponse:
                before = await queries.get_for_change(tx, task_id)
                task = await retrying.retry(tx, self._creation, before, caller.tier, start_at)
                return TaskResponse(task=schemas.Task.of(task))

            operation = f"POST /api/tasks/{task_id}/retry?from={start_at}"
            return await self._idempotency.once(tx, key, (operation, None), 200, work)
