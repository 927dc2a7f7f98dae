"""Endpoints: tasks and reviews."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field
from starlette.requests import Request

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.events.messages import Wanted
from rota.events.routes import After, LastEventId, still_allowed
from rota.events.schemas import Event
from rota.events.stream import EventStream, Streams
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import BodyTimestamp, Limit, Offset, Several, Text, path_id, shared
from rota.platform.idempotency import IdempotencyKey, Outcome
from rota.tasks import review_schemas, schemas
from rota.tasks.bodies import CreateTask, PatchTask
from rota.tasks.list_queries import Filter
from rota.tasks.quote_schemas import Quote, QuoteResponse
from rota.tasks.review_schemas import (
    ApprovalsResponse,
    ApproveTask,
    DecisionResponse,
    Gate,
    RejectTask,
    ReviewResponse,
    SnoozeResponse,
    SnoozeTask,
)
from rota.tasks.reviews import Reviews
from rota.tasks.schemas import (
    RetryTask,
    TaskResponse,
    TasksResponse,
)
from rota.tasks.service import Tasks
from rota.tasks.states import STATUSES, TERMINAL, Status

Reader = Annotated[Caller, Depends(allowed("tasks:read"))]
Writer = Annotated[Caller, Depends(allowed("tasks:write"))]
Approver = Annotated[Caller, Depends(allowed("tasks:approve", right="approve"))]

FilterText = Annotated[Text, Field(max_length=255)]
TaskId = Annotated[Text, path_id("task", examples.TASK_ID)]
AgentFilter = Annotated[
    FilterText | None,
    Query(
        description="Only tasks of this agent.",
        examples=[examples.AGENT],
        json_schema_extra=shared("AgentFilter"),
    ),
]


Statuses = Annotated[list[str], Several.of(STATUSES, "TaskStatus")]


def task_routes(
    tasks: Tasks, reviews: Reviews, streams: Streams, authenticator: Authenticator
) -> APIRouter:
    router = secured_router("Tasks")

    @router.post(
        "/api/tasks",
        status_code=201,
        response_model=TaskResponse,
        summary="Create a task",
        responses={200: {"model": QuoteResponse}, **documented(402, 404, 409)},
    )
    async def create_task(
        caller: Writer, body: CreateTask, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates a task, and starts it if an agent is named and the status is `PENDING`.

        The service runs a task that names an agent from the catalog. It first holds the agent's
        budget. If the balance does not cover the hold, the response is 402 and no task is created.
        A task without an agent, or with a status such as `RUNNING`, is a record of work that is
        done elsewhere: your client updates it with `PATCH`.

        With `dryRun`, nothing is created: the response is 200 with a quote, and an
        `Idempotency-Key` is not used.
        """
        if body.dry_run:
            quote = Quote.of(await tasks.quote(caller, body))
            return respond(Outcome.success(200, QuoteResponse(quote=quote)))
        return respond(await tasks.create(caller, body, idempotency_key))

    @router.get("/api/tasks", summary="List tasks")
    async def list_tasks(
        caller: Reader,
        status: Annotated[
            Statuses | None,
            Query(
                description="Only tasks in this state, or in one of several states separated by "
                "commas.",
                examples=[["PENDING", "RUNNING"]],
            ),
        ] = None,
        project_id: Annotated[
            FilterText | None,
            Query(
                alias="projectId",
                description="Only tasks with this project.",
                examples=[examples.PROJECT],
            ),
        ] = None,
        parent_task_id: Annotated[
            FilterText | None,
            Query(
                alias="parentTaskId",
                description="Only subtasks of this task.",
                examples=[examples.TASK_ID],
            ),
        ] = None,
        agent: AgentFilter = None,
        created_after: Annotated[
            BodyTimestamp | None,
            Query(
                alias="createdAfter",
                description="Only tasks created after this time.",
                examples=["2026-11-01T00:00:00Z"],
            ),
        ] = None,
        created_before: Annotated[
            BodyTimestamp | None,
            Query(
                alias="createdBefore",
                description="Only tasks created before this time.",
                examples=["2026-12-01T00:00:00Z"],
            ),
        ] = None,
        q: Annotated[
            FilterText | None,
            Query(
                min_length=1,
                description="Only tasks whose name, description and input contain all of these "
                "words or words that begin with them.",
                examples=["onboarding laptop"],
            ),
        ] = None,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> TasksResponse:
        """Returns a page of tasks, newest first. Filters combine: a task must match all of them.

        If the page would be larger than 1 MiB, long texts are cut, and the `truncated` of each
        task names them.
        """
        parent = ids.from_wire("task", parent_task_id) if parent_task_id is not None else None
        if parent_task_id is not None and parent is None:
            return TasksResponse(tasks=[], total=0)
        filters = Filter(
            statuses=cast(tuple[Status, ...], status or ()),
            agent=agent,
            project_id=project_id,
            parent_task_id=parent,
            created_after=created_after,
            created_before=created_before,
            words=q,
        )
        found, total = await tasks.page(caller, filters, limit, offset)
        return TasksResponse(tasks=[schemas.Task.of(task) for task in found], total=total)

    @router.get("/api/tasks/{id}", summary="Get a task", responses=documented(404))
    async def get_task(caller: Reader, id: TaskId) -> TaskResponse:  # noqa: A002
        """Returns one task. Returns 404 for a task of another account."""
        return TaskResponse(
            task=schemas.Task.of(await tasks.get(caller, ids.from_wire("task", id)))
        )

    @router.patch("/api/tasks/{id}", summary="Update a task", responses=documented(404, 409))
    async def patch_task(caller: Writer, id: TaskId, body: PatchTask) -> TaskResponse:  # noqa: A002
        """Changes the fields that are present and leaves the others as they are.

        If the service runs the task, the status can only become `CANCELLED`, which stops the run
        and cancels its subtasks; a request with `output` or `logs` returns 409. To run a failed
        task again, use `POST /api/tasks/{id}/retry`.
        """
        task = await tasks.patch(caller, ids.from_wire("task", id), body)
        return TaskResponse(task=schemas.Task.of(task))

    @router.post(
        "/api/tasks/{id}/approve",
        response_model=DecisionResponse,
        summary="Approve a task",
        responses=documented(404, 409),
    )
    async def approve_task(
        caller: Approver,
        id: TaskId,  # noqa: A002
        body: ApproveTask | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Approves what waits for a person: everything, or the items that `decisions` names.

        Send the `number` and `digest` of the review that you read. If a different review is pending
        by then, the response is 409 with that review in `details.review`.

        When no item is left to decide, the task continues: at a run gate it starts, at a tool
        gate the calls are made, at an output gate the task is completed. If another person has
        just made the same decision, the response is the same. Returns 409 if the task is not
        waiting, and for a call whose tool server was disconnected.

        If the account requires a second person, you cannot approve what you shaped (403
        `SECOND_PERSON_REQUIRED`), and changed arguments open a new review for another approver.
        """
        return respond(
            await reviews.approve(
                caller, ids.from_wire("task", id), body or ApproveTask(), idempotency_key
            )
        )

    @router.post(
        "/api/tasks/{id}/reject",
        response_model=DecisionResponse,
        summary="Reject a task",
        responses=documented(404, 409),
    )
    async def reject_task(
        caller: Approver,
        id: TaskId,  # noqa: A002
        body: RejectTask | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Rejects everything that waits for a person.

        Send the `number` and `digest` of the review that you read. If a different review is pending
        by then, the response is 409 with that review in `details.review`.

        The task is cancelled. With `resume`, it continues instead, and the agent reads the
        reason. Returns 409 for `resume` at a run gate, where the run has not started, and if the
        task is not waiting.
        """
        return respond(
            await reviews.reject(
                caller, ids.from_wire("task", id), body or RejectTask(), idempotency_key
            )
        )

    @router.post(
        "/api/tasks/{id}/retry",
        response_model=TaskResponse,
        summary="Retry a failed task",
        responses=documented(402, 404, 409),
    )
    async def retry_task(
        caller: Writer,
        id: TaskId,  # noqa: A002
        body: RetryTask | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Starts a new run of a `FAILED` task, and holds the agent's budget again. Returns 409
        for a task in another state."""
        start_at = body.from_ if body else "start"
        return respond(
            await tasks.retry(caller, ids.from_wire("task", id), start_at, idempotency_key)
        )

    @router.get(
        "/api/tasks/{id}/review", summary="Get the review of a task", responses=documented(404)
    )
    async def review_task(caller: Reader, id: TaskId) -> ReviewResponse:  # noqa: A002
        """Returns what waits for a person, with the arguments of each tool call, and earlier
        reviews."""
        found = await reviews.get(caller, ids.from_wire("task", id))
        return ReviewResponse(review=review_schemas.Review.of(found))

    @router.post(
        "/api/tasks/{id}/snooze",
        summary="Snooze a decision",
        responses=documented(404, 409),
    )
    async def snooze_task(
        caller: Approver,
        id: TaskId,  # noqa: A002
        body: SnoozeTask,
    ) -> SnoozeResponse:
        """Puts off the decision about a task until a time, for you alone. `GET /api/approvals`
        shows that time as `snoozedUntil`. Nothing is decided, and the task still expires at
        `expiresAt`. Returns 409 if the task does not wait for a person."""
        until = await reviews.snooze(caller, ids.from_wire("task", id), body.until)
        return SnoozeResponse(snoozed_until=until)

    @router.get("/api/approvals", summary="List pending approvals")
    async def list_approvals(
        caller: Reader,
        agent: AgentFilter = None,
        gate: Annotated[
            Gate | None, Query(description="Only tasks that wait at this gate.")
        ] = None,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> ApprovalsResponse:
        """Returns every task of the account that waits for a person, with its review. The one that
        has waited longest comes first.

        If the page would be larger than 1 MiB, long texts and arguments are left out, and
        `truncated` is true."""
        found, total = await tasks.waiting(caller, agent, gate, limit, offset)
        approvals = [
            review_schemas.Approval(
                task=schemas.Task.of(each.found.task),
                review=review_schemas.Review.of(each.found),
                snoozed_until=each.snoozed_until,
                truncated=each.truncated,
            )
            for each in found
        ]
        return ApprovalsResponse(approvals=approvals, total=total)

    @router.get(
        "/api/tasks/{id}/events",
        summary="Stream the events of a task",
        response_class=EventStream,
        responses={200: {"model": Event}, **documented(404)},
    )
    async def task_events(
        request: Request,
        caller: Reader,
        id: TaskId,  # noqa: A002
        last_event_id: LastEventId = None,
        after: After = None,
    ) -> EventStream:
        """Sends the events of a task as server-sent events, from the first one or after the
        sequence number that you send. The stream ends when the task is `COMPLETED`, `FAILED` or
        `CANCELLED`. If you retry a failed task, open the stream again.

        Each message has the lines `id` (the sequence), `event` (the type) and `data` (an `Event`
        in JSON). An account with too many open streams gets 429 `RATE_LIMITED`.

        The stream also sends the text of each model call while it is written. These messages have
        no `id`, and `data` is `{ run, step, text }`. `event: delta` has what was added to the text
        of the step. `event: text` has the whole text so far and replaces what you received before:
        it is sent when you join or reconnect in the middle, and when a call starts over. When
        `step.finished` arrives, you have received the whole text of the step.
        """
        task = await tasks.get(caller, ids.from_wire("task", id))
        start = last_event_id if last_event_id is not None else after
        return streams.open(
            Wanted(
                caller.account_id,
                start or 0,
                still_allowed(request, authenticator),
                task_id=task.id,
                ends_with=TERMINAL,
                follow=task.status not in TERMINAL,
            )
        )

    return router
