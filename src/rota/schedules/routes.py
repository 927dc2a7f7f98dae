"""Endpoints: schedules."""

from typing import Annotated

from fastapi import APIRouter, Response

from rota.auth.routing import secured_router
from rota.auth.schemas import DeletedResponse
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Text, path_id
from rota.platform.idempotency import IdempotencyKey
from rota.schedules import schemas
from rota.schedules.bodies import CreateSchedule, PatchSchedule
from rota.schedules.schemas import ScheduleDetailsResponse, ScheduleResponse, SchedulesResponse
from rota.schedules.service import Schedules
from rota.tasks import schemas as task_schemas
from rota.tasks.routes import Reader, Writer
from rota.tasks.schemas import TaskResponse

ScheduleId = Annotated[Text, path_id("schedule", examples.SCHEDULE_ID)]


def schedule_routes(schedules: Schedules) -> APIRouter:
    router = secured_router("Schedules")

    @router.post(
        "/api/schedules",
        status_code=201,
        response_model=ScheduleResponse,
        summary="Create a schedule",
        responses=documented(404, 409),
    )
    async def create_schedule(
        caller: Writer, body: CreateSchedule, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates a schedule. At each of its times, a worker creates the task as you would with
        `POST /api/tasks`: the tier and the balance at that time count.

        The schedule acts for you: if the user or the API key that saved it last loses the right to
        create tasks, it pauses. An account has at most 1,000 schedules (409).

        A task that a list has cut cannot be sent back (400).
        """
        return respond(await schedules.create(caller, body, idempotency_key))

    @router.get("/api/schedules", summary="List schedules")
    async def list_schedules(
        caller: Reader, limit: Limit = 50, offset: Offset = 0
    ) -> SchedulesResponse:
        """Returns a page of schedules, newest first.

        If the page would be larger than 1 MiB, long texts are cut, and the `truncated` of each
        schedule names what is incomplete.
        """
        found, total, truncated = await schedules.page(caller, limit, offset)
        return SchedulesResponse(
            schedules=[schemas.Schedule.of(each) for each in found],
            total=total,
            truncated=truncated,
        )

    @router.get("/api/schedules/{id}", summary="Get a schedule", responses=documented(404))
    async def get_schedule(caller: Reader, id: ScheduleId) -> ScheduleDetailsResponse:  # noqa: A002
        """Returns a schedule, with its next five times and its last ten tasks."""
        found = await schedules.get(caller, ids.from_wire("sched", id))
        return ScheduleDetailsResponse(
            schedule=schemas.Schedule.of(found.schedule),
            next_times=found.next_times,
            last_tasks=[task_schemas.Task.of(task) for task in found.last_tasks],
        )

    @router.patch("/api/schedules/{id}", summary="Change a schedule", responses=documented(404))
    async def patch_schedule(
        caller: Writer,
        id: ScheduleId,  # noqa: A002
        body: PatchSchedule,
    ) -> ScheduleResponse:
        """Changes the fields that are present. `task` is replaced as a whole. A task that a list
        has cut cannot be sent back (400).

        `paused` stops the schedule or lets it continue. Times that pass while it is paused create
        no tasks. After a change, the schedule acts for you.
        """
        schedule = await schedules.patch(caller, ids.from_wire("sched", id), body)
        return ScheduleResponse(schedule=schemas.Schedule.of(schedule))

    @router.delete("/api/schedules/{id}", summary="Delete a schedule", responses=documented(404))
    async def delete_schedule(caller: Writer, id: ScheduleId) -> DeletedResponse:  # noqa: A002
        """Deletes the schedule. Its tasks stay, and those that run continue."""
        await schedules.delete(caller, ids.from_wire("sched", id))
        return DeletedResponse(id=id)

    @router.post(
        "/api/schedules/{id}/run",
        status_code=201,
        response_model=TaskResponse,
        summary="Run a schedule now",
        responses=documented(402, 404, 409),
    )
    async def run_schedule(
        caller: Writer,
        id: ScheduleId,  # noqa: A002
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Creates a task of the schedule now, even if the schedule is paused or an earlier task has
        not ended. The times of the schedule do not change."""
        return respond(await schedules.run(caller, ids.from_wire("sched", id), idempotency_key))

    return router
