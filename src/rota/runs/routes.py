"""Endpoints: the timeline of a task, what a retry would do, and forks."""

from fastapi import APIRouter, Response

from rota.auth.routing import secured_router
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset
from rota.platform.idempotency import IdempotencyKey, Outcome
from rota.runs.fork_schemas import ForkOptionsResponse, ForkTask
from rota.runs.forks import Forks
from rota.runs.retries import Retries
from rota.runs.retry_schemas import RetryQuote, RetryQuoteResponse
from rota.runs.schemas import TimelineResponse, TimelineStep
from rota.runs.timeline import Timelines
from rota.tasks.quote_schemas import Quote, QuoteResponse
from rota.tasks.routes import Reader, TaskId, Writer
from rota.tasks.schemas import TaskResponse


def run_routes(timelines: Timelines, retries: Retries, forks: Forks) -> APIRouter:
    router = secured_router("Tasks")

    @router.get(
        "/api/tasks/{id}/timeline",
        summary="Get the timeline of a task",
        responses=documented(404),
    )
    async def task_timeline(
        caller: Reader,
        id: TaskId,  # noqa: A002
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> TimelineResponse:
        """Returns each model call, tool call and approval of a task, oldest first, with times,
        tokens and cost. Steps that a retry kept appear once. In a fork, the steps that
        it copied from another task have `copied: true`."""
        entries, total = await timelines.page(caller, ids.from_wire("task", id), limit, offset)
        return TimelineResponse(steps=[TimelineStep.of(entry) for entry in entries], total=total)

    @router.get(
        "/api/tasks/{id}/retry",
        summary="Show what a retry would do",
        responses=documented(404),
    )
    async def quote_retry(caller: Reader, id: TaskId) -> RetryQuoteResponse:  # noqa: A002
        """Returns what each retry of the task would keep, repeat, ask for and cost at most. The
        balance is checked when you retry. Nothing changes."""
        quote = await retries.quote(caller, ids.from_wire("task", id))
        return RetryQuoteResponse(retry=RetryQuote.of(quote))

    @router.get(
        "/api/tasks/{id}/fork",
        summary="Show how a task can be forked",
        responses=documented(404),
    )
    async def fork_options(caller: Reader, id: TaskId) -> ForkOptionsResponse:  # noqa: A002
        """Returns the steps that a fork of the task can continue from, and the versions and models
        that it can use. Nothing changes."""
        return ForkOptionsResponse(fork=await forks.options(caller, ids.from_wire("task", id)))

    @router.post(
        "/api/tasks/{id}/fork",
        status_code=201,
        response_model=TaskResponse,
        summary="Fork a task",
        responses={200: {"model": QuoteResponse}, **documented(402, 404, 409)},
    )
    async def fork_task(
        caller: Writer,
        id: TaskId,  # noqa: A002
        body: ForkTask,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Creates a task that copies the steps of this one up to `fromStep` and continues from
        there. Copied steps are not run or charged again. Every tool call of the fork that writes
        needs a person's approval. Returns 409 for a task that your client runs, for a step that has
        not finished, and for one with nothing after it. With `dryRun`, returns 200 with a quote.
        """
        task_id = ids.from_wire("task", id)
        if body.dry_run:
            quote = Quote.of(await forks.quote(caller, task_id, body))
            return respond(Outcome.success(200, QuoteResponse(quote=quote)))
        return respond(await forks.fork(caller, task_id, body, idempotency_key))

    return router
