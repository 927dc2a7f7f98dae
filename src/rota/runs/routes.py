"""Endpoints: the timeline of a task, and what a retry would do."""

from fastapi import APIRouter

from rota.auth.routing import secured_router
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.schemas import Limit, Offset
from rota.runs.retries import Retries
from rota.runs.retry_schemas import RetryQuote, RetryQuoteResponse
from rota.runs.schemas import TimelineResponse, TimelineStep
from rota.runs.timeline import Timelines
from rota.tasks.routes import Reader, TaskId


def run_routes(timelines: Timelines, retries: Retries) -> APIRouter:
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
        tokens and cost. Steps that a retry kept appear once."""
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

    return router
