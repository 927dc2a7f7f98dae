"""Endpoints of tasks."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.requests import Request

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.events.routes import After, LastEventId, still_allowed
from rota.events.stream import Streams
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import QueryInt, Text
from rota.platform.idempotency import IdempotencyKey
from rota.tasks import schemas
from rota.tasks.queries import Filter
from rota.tasks.reviews import Reviews
from rota.tasks.schemas import (
    ApprovalsResponse,
    ApproveTask,
    CreateTask,
    DecisionResponse,
    PatchTask,
    RejectTask,
    RetryTask,
    ReviewResponse,
    TaskResponse,
    TasksResponse,
)
from rota.tasks.service import Tasks
from rota.tasks.states import FINAL, Status

Reader = Annotated[Caller, Depends(allowed("tasks:read"))]
Writer = Annotated[Caller, Depends(allowed("tasks:write"))]
Approver = Annotated[Caller, Depends(allowed("tasks:approve"))]

FilterText = Annotated[Text, Field(max_length=255)]


def task_routes(
    tasks: Tasks, reviews: Reviews, streams: Streams, authenticator: Authenticator
) -> APIRouter:
    router = secured_router("Tasks")

    @router.post(
        "/api/tasks",
        status_code=201,
        response_model=TaskResponse,
        summary="Hand over a task",
        responses=documented(402, 404, 409),
    )
    async def create_task(
        caller: Writer, body: CreateTask, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await tasks.create(caller, body, idempotency_key))

    @router.get("/api/tasks", summary="List tasks, newest first")
    async def list_tasks(
        caller: Reader,
        status: Status | None = None,
        project_id: Annotated[FilterText | None, Query(alias="projectId")] = None,
        parent_task_id: Annotated[FilterText | None, Query(alias="parentTaskId")] = None,
        agent: FilterText | None = None,
        limit: Annotated[QueryInt, Query(ge=1, le=100)] = 50,
        offset: Annotated[QueryInt, Query(ge=0, le=2**31 - 1)] = 0,
    ) -> TasksResponse:
        parent = ids.from_wire("task", parent_task_id) if parent_task_id is not None else None
        if parent_task_id is not None and parent is None:
            return TasksResponse(tasks=[], total=0)
        wanted = Filter(status, agent, project_id, parent)
        found, total = await tasks.page(caller, wanted, limit, offset)
        return TasksResponse(tasks=[schemas.Task.of(task) for task in found], total=total)

    @router.get("/api/tasks/{id}", summary="Fetch a task", responses=documented(404))
    async def get_task(caller: Reader, id: Text) -> TaskResponse:  # noqa: A002
        return TaskResponse(
            task=schemas.Task.of(await tasks.get(caller, ids.from_wire("task", id)))
        )

    @router.patch("/api/tasks/{id}", summary="Change a task", responses=documented(404, 409))
    async def patch_task(caller: Writer, id: Text, body: PatchTask) -> TaskResponse:  # noqa: A002
        task = await tasks.patch(caller, ids.from_wire("task", id), body)
        return TaskResponse(task=schemas.Task.of(task))

    @router.post(
        "/api/tasks/{id}/approve",
        summary="Approve what waits, all of it or the items named",
        responses=documented(404, 409),
    )
    async def approve_task(
        caller: Approver,
        id: Text,  # noqa: A002
        body: ApproveTask | None = None,
    ) -> DecisionResponse:
        named = body.decisions if body else None
        task, found = await reviews.approve(caller, ids.from_wire("task", id), named)
        return DecisionResponse(task=schemas.Task.of(task), review=schemas.Review.of(task, found))

    @router.post(
        "/api/tasks/{id}/reject",
        summary="Reject a task that waits",
        responses=documented(404, 409),
    )
    async def reject_task(
        caller: Approver,
        id: Text,  # noqa: A002
        body: RejectTask | None = None,
    ) -> DecisionResponse:
        body = body or RejectTask()
        task, found = await reviews.reject(
            caller, ids.from_wire("task", id), body.reason, resume=body.resume
        )
        return DecisionResponse(task=schemas.Task.of(task), review=schemas.Review.of(task, found))

    @router.post(
        "/api/tasks/{id}/retry",
        response_model=TaskResponse,
        summary="Run a failed task again",
        responses=documented(402, 404, 409),
    )
    async def retry_task(
        caller: Writer,
        id: Text,  # noqa: A002
        body: RetryTask | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        start_at = body.from_ if body else "start"
        return respond(
            await tasks.retry(caller, ids.from_wire("task", id), start_at, idempotency_key)
        )

    @router.get(
        "/api/tasks/{id}/review", summary="What waits for a person", responses=documented(404)
    )
    async def review_task(caller: Reader, id: Text) -> ReviewResponse:  # noqa: A002
        task, found = await reviews.get(caller, ids.from_wire("task", id))
        return ReviewResponse(review=schemas.Review.of(task, found))

    @router.get("/api/approvals", summary="Everything that waits for a person, oldest first")
    async def list_approvals(
        caller: Reader,
        limit: Annotated[QueryInt, Query(ge=1, le=100)] = 50,
        offset: Annotated[QueryInt, Query(ge=0, le=2**31 - 1)] = 0,
    ) -> ApprovalsResponse:
        found, total = await reviews.pending(caller, limit, offset)
        shapes = [
            schemas.Approval(task=schemas.Task.of(task), review=schemas.Review.of(task, pending))
            for task, pending in found
        ]
        return ApprovalsResponse(approvals=shapes, total=total)

    @router.get(
        "/api/tasks/{id}/events",
        summary="Live events of a task",
        response_class=StreamingResponse,
        responses={
            200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
            **documented(404),
        },
    )
    async def task_events(
        request: Request,
        caller: Reader,
        id: Text,  # noqa: A002
        last_event_id: LastEventId = None,
        after: After = None,
    ) -> StreamingResponse:
        """Server-sent events from the task's beginning, or after the given number.

        The stream ends when the task is COMPLETED or CANCELLED, which are final.
        """
        task = await tasks.get(caller, ids.from_wire("task", id))
        start = last_event_id if last_event_id is not None else after
        return streams.open(
            caller.account_id,
            start or 0,
            still_allowed(request, authenticator),
            task_id=task.id,
            ends_with=FINAL,
            follow=task.status not in FINAL,
        )

    return router
