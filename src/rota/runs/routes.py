"""What a run shows: its timeline."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.schemas import QueryInt, Text
from rota.runs.schemas import TimelineResponse, TimelineStep
from rota.runs.timeline import Timelines


def run_routes(timelines: Timelines) -> APIRouter:
    router = secured_router("Tasks")

    @router.get(
        "/api/tasks/{id}/timeline",
        summary="Each model call, tool call and approval of a task",
        responses=documented(404),
    )
    async def task_timeline(
        caller: Annotated[Caller, Depends(allowed("tasks:read"))],
        id: Text,  # noqa: A002
        limit: Annotated[QueryInt, Query(ge=1, le=100)] = 50,
        offset: Annotated[QueryInt, Query(ge=0, le=2**31 - 1)] = 0,
    ) -> TimelineResponse:
        entries, total = await timelines.page(caller, ids.from_wire("task", id), limit, offset)
        return TimelineResponse(steps=[TimelineStep.of(entry) for entry in entries], total=total)

    return router
