"""What a run shows: its timeline."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.platform import ids
from rota.platform.db import Database
from rota.platform.http.description import documented
from rota.platform.http.schemas import QueryInt, Text
from rota.runs import timeline
from rota.runs.schemas import TimelineResponse, TimelineStep
from rota.tasks import queries
from rota.tasks.errors import TaskNotFound


def run_routes(db: Database) -> APIRouter:
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
        task_id = ids.from_wire("task", id)
        async with db.snapshot(caller.account_id, caller.user_id) as tx:
            if not task_id or not await queries.find(tx, task_id):
                raise TaskNotFound
            entries, total = await timeline.page(tx, task_id, limit, offset)
        return TimelineResponse(steps=[TimelineStep.of(entry) for entry in entries], total=total)

    return router
