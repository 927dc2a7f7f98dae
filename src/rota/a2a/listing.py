"""Pages of tasks, newest first. A page token names the last task of its page."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from a2a.types import a2a_pb2 as wire
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE, MAX_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import UnsupportedOperationError

from rota.a2a.errors import refused
from rota.a2a.results import STATUS_OF
from rota.auth.caller import Caller
from rota.platform import ids
from rota.platform.errors import FieldError, ValidationFailed
from rota.tasks.errors import TaskNotFound
from rota.tasks.list_queries import Filter
from rota.tasks.model import Task
from rota.tasks.service import Tasks


@dataclass(frozen=True, slots=True)
class Page:
    tasks: Sequence[Task]
    next_token: str
    size: int
    total: int


class Listing:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def page(self, caller: Caller, params: wire.ListTasksRequest, agent: str | None) -> Page:
        size = DEFAULT_LIST_TASKS_PAGE_SIZE
        if params.HasField("page_size"):
            size = params.page_size
            if not 1 <= size <= MAX_LIST_TASKS_PAGE_SIZE:
                most = MAX_LIST_TASKS_PAGE_SIZE
                raise ValidationFailed.of(FieldError("pageSize", f"must be from 1 to {most}"))
        if params.HasField("status_timestamp_after"):
            raise refused(
                UnsupportedOperationError,
                "Lists have no filter by time. GET /api/events returns what has changed.",
            )
        filters = Filter(
            agent=agent,
            project_id=params.context_id or None,
            before=_task_of(params.page_token) if params.page_token else None,
        )
        if params.status != wire.TASK_STATE_UNSPECIFIED:
            status = STATUS_OF.get(params.status)
            if status is None:
                # No task is ever in one of the other states.
                return Page((), "", size, 0)
            filters = replace(filters, statuses=(status,))
        # One more than the page has says whether there is a next page.
        found, total = await self._tasks.next_page(caller, filters, size + 1)
        tasks: list[Task] = list(found)
        if (first := await self._first(caller, filters)) is not None:
            total += 1
            if filters.before is None or first.id < filters.before:
                # Often last, but an older task can have joined the context.
                tasks.append(first)
                tasks.sort(key=lambda task: task.id, reverse=True)
        token = _token_of(tasks[size - 1].id) if len(tasks) > size else ""
        return Page(tasks[:size], token, size, total)

    async def _first(self, caller: Caller, filters: Filter) -> Task | None:
        """The task that a context is named after. It has no context of its own."""
        task_id = ids.from_wire("task", filters.project_id) if filters.project_id else None
        if task_id is None:
            return None
        try:
            task = await self._tasks.get(caller, task_id)
        except TaskNotFound:
            return None
        fits = filters.agent in (None, task.agent) and (
            not filters.statuses or task.status in filters.statuses
        )
        return task if fits and task.project_id is None else None


def check_status(params: wire.ListTasksRequest, sent: object) -> None:
    """Refuses a state that does not exist. The SDK takes it for none, and all tasks would match."""
    none = wire.TASK_STATE_UNSPECIFIED
    if params.status == none and str(sent or "") not in ("", "0", wire.TaskState.Name(none)):
        states = ", ".join(map(wire.TaskState.Name, STATUS_OF))
        raise ValidationFailed.of(FieldError("status", f"must be one of {states}"))


def _token_of(task_id: UUID) -> str:
    return urlsafe_b64encode(task_id.bytes).decode().rstrip("=")


def _task_of(token: str) -> UUID:
    try:
        return UUID(bytes=urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, binascii.Error):
        raise ValidationFailed.of(
            FieldError("pageToken", "must be the nextPageToken of an earlier page")
        ) from None
