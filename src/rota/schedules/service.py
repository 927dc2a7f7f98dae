"""What clients do with schedules: create, list, read, change, delete and run them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from rota.auth.caller import Caller
from rota.events import journal
from rota.platform import clock, ids, json
from rota.platform.db import AccountTransaction, Database
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.schema import SchemaChecks
from rota.schedules import queries, schemas, times
from rota.schedules.bodies import CreateSchedule, PatchSchedule
from rota.schedules.errors import (
    InvalidTimes,
    ScheduleNotFound,
    TaskIncomplete,
    TaskNotUsable,
    TooManySchedules,
)
from rota.schedules.model import ListedSchedule, Schedule
from rota.schedules.schemas import ScheduleResponse
from rota.tasks import creation, list_queries, shaping
from rota.tasks import queries as tasks
from rota.tasks import schemas as task_schemas
from rota.tasks.bodies import TaskBody
from rota.tasks.creation import TaskCreation
from rota.tasks.errors import InvalidField
from rota.tasks.model import CutText, ListedTask
from rota.tasks.pages import PAGE_BYTES
from rota.tasks.schemas import TaskResponse

MAX_SCHEDULES = 1_000
SHOWN_TIMES = 5
# Characters of each text, on a page that would be too large.
CUT = 2_000
_TEXTS: tuple[CutText, ...] = ("input", "description", "output")
_LEFT_OUT: tuple[CutText, ...] = ("actions", "outputSchema")


@dataclass(frozen=True, slots=True)
class Details:
    schedule: Schedule
    next_times: list[datetime]
    last_tasks: list[ListedTask]


class Schedules:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        creation: TaskCreation,
        schema_checks: SchemaChecks,
        *,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._creation = creation
        self._schema_checks = schema_checks
        self._now = now

    async def create(self, caller: Caller, body: CreateSchedule, key: str | None) -> Outcome:
        _check_times(body.cron, body.time_zone)
        await self._check_whole(caller, body.task, body.truncated)
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> ScheduleResponse:
                # The account's lock makes the count exact.
                await journal.lock_open_account(tx)
                if await queries.count(tx) >= MAX_SCHEDULES:
                    raise TooManySchedules(MAX_SCHEDULES)
                await self._check_task(tx, caller, body.task)
                now = self._now()
                new = Schedule(
                    id=ids.new_uuid(),
                    name=body.name,
                    cron=body.cron,
                    time_zone=body.time_zone,
                    task=stored_task(body.task),
                    overlap=body.overlap,
                    paused=body.paused,
                    next_at=None,
                    check_at=None,
                    saved_by=caller.user_id,
                    saved_with=caller.key_id,
                    shaped_by=[],
                    last_due_at=None,
                    last_outcome=None,
                    last_error=None,
                    created_at=now,
                    updated_at=now,
                )
                schedule = new if new.paused else planned(new, now)
                await queries.insert(tx, schedule)
                await _record(tx, "schedule.created", schedule.id)
                return ScheduleResponse(schedule=schemas.Schedule.of(schedule))

            return await self._idempotency.once(tx, key, ("POST /api/schedules", body), 201, work)

    async def page(
        self, caller: Caller, limit: int, offset: int
    ) -> tuple[Sequence[Schedule], int, bool]:
        """A page of schedules, how many there are, and whether tasks were cut."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            found, total = await queries.page(tx, limit, offset), await queries.count(tx)
        if sum(len(json.dumps(each.task)) for each in found) <= PAGE_BYTES:
            return found, total, False
        return [_cut(each) for each in found], total, True

    async def get(self, caller: Caller, schedule_id: UUID | None) -> Details:
        """The schedule, its next times and its last tasks."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            schedule = await queries.find(tx, schedule_id) if schedule_id else None
            if schedule is None:
                raise ScheduleNotFound
            newest = (await queries.tasks_of(tx, schedule.id))[: queries.SHOWN_TASKS]
            last = await list_queries.by_ids(tx, newest, PAGE_BYTES)
        next_times = times.upcoming(schedule.cron, schedule.time_zone, self._now(), SHOWN_TIMES)
        return Details(schedule, [] if schedule.paused else next_times, last)

    async def patch(
        self, caller: Caller, schedule_id: UUID | None, body: PatchSchedule
    ) -> Schedule:
        if body.task is not None:
            await self._check_whole(caller, body.task, body.truncated)
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            before = await _get_for_change(tx, schedule_id)
            if body.task is not None:
                await self._check_task(tx, caller, body.task)
            after = _patched(before, body)
            if after == before:
                return before
            _check_times(after.cron, after.time_zone)
            await journal.lock_open_account(tx)
            now = self._now()
            # The tasks are from now on those of the user who shaped them last.
            after = replace(
                after,
                saved_by=caller.user_id,
                saved_with=caller.key_id,
                shaped_by=sorted({*before.shaped_by, before.saved_by}),
                updated_at=now,
            )
            if after.paused:
                after = replace(after, next_at=None, check_at=None)
            elif _times_of(after) != _times_of(before):
                after = planned(replace(after, last_error=None), now)
            await queries.update(tx, after)
            await _record(tx, "schedule.updated", after.id)
            return after

    async def delete(self, caller: Caller, schedule_id: UUID | None) -> None:
        """Deletes the schedule. Its tasks stay."""
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            if schedule_id is None or not await queries.delete(tx, schedule_id):
                raise ScheduleNotFound
            await _record(tx, "schedule.deleted", schedule_id)

    async def run(self, caller: Caller, schedule_id: UUID | None, key: str | None) -> Outcome:
        """Creates a task of the schedule now. The times of the schedule do not change."""
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> TaskResponse:
                schedule = await _get_for_change(tx, schedule_id)
                task = await creation.create_requested(
                    tx, self._creation, task_body(schedule), caller.tier
                )
                await remember_task(tx, schedule.id, task.id)
                await record_shapers(tx, schedule, task.id)
                return TaskResponse(task=task_schemas.Task.of(task))

            operation = f"POST /api/schedules/{schedule_id}/run"
            return await self._idempotency.once(tx, key, (operation, None), 201, work)

    async def _check_whole(
        self, caller: Caller, task: TaskBody, truncated: Sequence[CutText] | None
    ) -> None:
        """Raises if a list has cut the task, or its schema is not valid."""
        if truncated:
            raise TaskIncomplete
        with _errors_of_task():
            await creation.check_schema(self._schema_checks, caller.account_id, task)

    async def _check_task(self, tx: AccountTransaction, caller: Caller, task: TaskBody) -> None:
        """Raises if the account could not create the task now, apart from its balance."""
        find = tasks.find_for_change
        with _errors_of_task():
            new = await creation.new_task(tx, self._creation, task, caller.tier, find)
            await self._creation.build(tx, new)


@contextmanager
def _errors_of_task() -> Iterator[None]:
    """Names the fields of the task as the request has them."""
    try:
        yield
    except InvalidField as error:
        raise InvalidField(f"task.{error.field}", error.reason) from None


def planned(schedule: Schedule, now: datetime) -> Schedule:
    """The schedule with its next time after now."""
    next_at = times.next_after(schedule.cron, schedule.time_zone, now)
    return replace(schedule, next_at=next_at, check_at=next_at)


async def remember_task(tx: AccountTransaction, schedule_id: UUID, task_id: UUID) -> None:
    """Adds a task of the schedule, and forgets older ones that are not shown any more. An open one
    stays: the next time of the schedule depends on it."""
    older = (await queries.tasks_of(tx, schedule_id))[queries.SHOWN_TASKS - 1 :]
    still_open = await tasks.open_among(tx, older) if older else set()
    ended = [each for each in older if each not in still_open]
    await queries.add_task(tx, schedule_id, task_id, ended)


async def record_shapers(tx: AccountTransaction, schedule: Schedule, task_id: UUID) -> None:
    """Everyone who has saved the schedule shaped its tasks."""
    await shaping.record(tx, task_id, "scheduled", {*schedule.shaped_by, schedule.saved_by})


def stored_task(body: TaskBody) -> dict[str, Any]:
    return body.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def task_body(schedule: Schedule) -> TaskBody:
    try:
        return TaskBody.model_validate(schedule.task)
    except ValidationError:
        raise TaskNotUsable from None


def _cut(schedule: Schedule) -> ListedSchedule:
    task, truncated = dict(schedule.task), list[CutText]()
    for text in _TEXTS:
        if len(task.get(text) or "") > CUT:
            task[text] = task[text][:CUT]
            truncated.append(text)
    for part in _LEFT_OUT:
        if task.pop(part, None) is not None:
            truncated.append(part)
    values = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}
    return ListedSchedule(**values | {"task": task}, truncated=truncated)


def _times_of(schedule: Schedule) -> tuple[str, str, bool]:
    return schedule.cron, schedule.time_zone, schedule.paused


def _check_times(cron: str, time_zone: str) -> None:
    if (problem := times.problem_of(cron)) is not None:
        raise InvalidTimes("cron", problem)
    if time_zone not in times.zones():
        raise InvalidTimes("timeZone", "must be a name of the IANA database, such as Europe/Berlin")


def _patched(schedule: Schedule, body: PatchSchedule) -> Schedule:
    changes: dict[str, Any] = {
        name: value
        for name in ("name", "cron", "time_zone", "overlap", "paused")
        if (value := getattr(body, name)) is not None
    }
    if body.task is not None:
        changes["task"] = stored_task(body.task)
    return replace(schedule, **changes)


async def _get_for_change(tx: AccountTransaction, schedule_id: UUID | None) -> Schedule:
    schedule = await queries.find_for_change(tx, schedule_id) if schedule_id else None
    if schedule is None:
        raise ScheduleNotFound
    return schedule


async def _record(tx: AccountTransaction, kind: str, schedule_id: UUID) -> None:
    data = {"scheduleId": ids.to_wire("sched", schedule_id), "by": ids.to_wire("user", tx.user_id)}
    await journal.append(tx, kind, data)
