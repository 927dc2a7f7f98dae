"""The tasks extension (io.modelcontextprotocol/tasks): handles for tasks that clients poll.

A client that declares the extension gets a handle when it creates a task, and asks for the result
with `tasks/get`. The handle is the task itself, so it works in every process and does not expire.
A task that waits for a person asks the client to open the page of the review, if the client can
open pages. Nothing that the client answers decides anything.
"""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import RequestParams

from rota.auth.caller import Caller
from rota.mcp_server.calls import Calls
from rota.mcp_server.results import Presenter, wire
from rota.platform import clock, ids
from rota.tasks.model import Task
from rota.tasks.reviews import Reviews
from rota.tasks.states import TERMINAL

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2_000
# A person does not decide within seconds.
POLL_REVIEW_MS = 10_000


class TaskParams(RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


def understands_handles(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client said with this request that it supports the extension."""
    capabilities = context.session.client_capabilities
    return capabilities is not None and EXTENSION in (capabilities.extensions or {})


def _opens_pages(context: ServerRequestContext[Any, Any]) -> bool:
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and elicitation.url is not None


class Handles:
    def __init__(self, calls: Calls, reviews: Reviews, presenter: Presenter) -> None:
        self._calls = calls
        self._reviews = reviews
        self._presenter = presenter

    def created(self, caller: Caller, task: Task) -> dict[str, Any]:
        return {"resultType": "task", **self._task(caller, task), "status": "working"}

    async def detailed(
        self, context: ServerRequestContext[Any, Any], caller: Caller, task_id: str
    ) -> dict[str, Any]:
        task, number = await self._calls.get(caller, task_id), 0
        if task.status == "WAITING_APPROVAL" and _opens_pages(context):
            found = await self._reviews.get(caller, task.id)
            # Both are read together: a person may have decided meanwhile.
            task, number = found.task, found.reviews[0].number
        shown = {"resultType": "complete", **self._task(caller, task)}
        if task.status == "WAITING_APPROVAL" and number:
            url = self._presenter.review_url(caller.account_id, task.id)
            # Each review of the task has a key of its own.
            key = f"review-{number}"
            shown["status"] = "input_required"
            shown["inputRequests"] = {
                key: {
                    "method": "elicitation/create",
                    "params": {
                        "mode": "url",
                        "message": "A person must decide about this task in the dashboard.",
                        "url": url,
                        "elicitationId": f"{ids.to_wire('task', task.id)}-{key}",
                    },
                }
            }
        elif task.status in TERMINAL and task.status != "CANCELLED":
            # A failed task is a result that reports an error. `failed` is for protocol errors.
            final = self._calls.final(caller, task)
            shown["result"] = wire(final)
        return shown

    def _task(self, caller: Caller, task: Task) -> dict[str, Any]:
        waits = task.status == "WAITING_APPROVAL"
        return {
            "taskId": ids.to_wire("task", task.id),
            "status": _STATUS.get(task.status, "working"),
            "statusMessage": self._presenter.sentence(caller.account_id, task),
            "createdAt": clock.to_wire(task.created_at),
            "lastUpdatedAt": clock.to_wire(task.updated_at),
            "ttlMs": None,
            "pollIntervalMs": POLL_REVIEW_MS if waits else POLL_MS,
        }


_STATUS = {"COMPLETED": "completed", "FAILED": "completed", "CANCELLED": "cancelled"}
