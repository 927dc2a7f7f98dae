"""Endpoints: the timeline of a task."""

from typing import Annotated

from fastapi import APIRouter, Depends

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.schemas import Limit, Offset
from rota.runs.schemas import TimelineResponse, TimelineStep
from rota.runs.timeline import Timelines
from rota.tasks.routes import TaskId


def run_routes(timelines: Timelines) -> APIRouter:
    router = secured_router("Tasks")

    @router.get(
        "/api/tasks/{id}/timeline",
        summary="Get the timeline of a task",
        responses=documented(404),
    )
    async def task_timeline(
        caller: Annotated[Caller, Depends(allowed("tasks:read"))],
        id: TaskId,  # noqa: A002
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> TimelineResponse:
        """Returns each model call, tool call and approval of a task, oldest first, with times,
        tokens and cost. Steps that a retry kept appear once."""
        entries, total = await timelines.page(caller, ids.from_wire("task", id), limit, offset)
        return TimelineResponse(steps=[TimelineStep.of(entry) for entry in entries], total=total)

    return router
