"""Tasks: create them, follow them, decide about them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._async.streams import AsyncTaskEvents
from rota_sdk._async.waiting import ended
from rota_sdk._events import decoded
from rota_sdk._generated import operations
from rota_sdk._operation import Operation
from rota_sdk._requests import UNSET, Request, Unset, bodies, change, creation, id_of, parameters
from rota_sdk._results import TaskResult, review_shown, task_result

TaskRef: TypeAlias = str | models.Task
# `list` is a method below.
TaskResults: TypeAlias = list[TaskResult]
ShownReview: TypeAlias = models.Review | models.PastReview | models.ReviewRef


class Tasks(AsyncResource):
    async def create(
        self,
        *,
        name: str,
        agent: str | None = None,
        input: str | None = None,  # noqa: A002
        status: models.TaskStatus | None = None,
        project_id: str | None = None,
        description: str | None = None,
        priority: float | None = None,
        parent_task_id: str | None = None,
        output: str | None = None,
        actions: Sequence[str] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        budget_cents: int | None = None,
        deadline: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> models.Task:
        """Creates a task. With an agent, the service runs it.

        The request has an Idempotency-Key, so a lost response never makes a second task. Pass your
        own key if your program may repeat the call after a restart.
        """
        body = creation(
            models.CreateTask,
            name=name,
            agent=agent,
            input=input,
            status=status,
            project_id=project_id,
            description=description,
            priority=priority,
            parent_task_id=parent_task_id,
            output=output,
            actions=actions,
            output_schema=output_schema,
            budget_cents=budget_cents,
            deadline=deadline,
        )
        response = await self._call(
            operations.create_task, body=body, idempotency_key=idempotency_key
        )
        return response.task

    async def quote(
        self,
        *,
        name: str,
        agent: str,
        input: str | None = None,  # noqa: A002
        status: models.TaskStatus | None = None,
        project_id: str | None = None,
        description: str | None = None,
        priority: float | None = None,
        parent_task_id: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        budget_cents: int | None = None,
        deadline: datetime | None = None,
    ) -> models.Quote:
        """What a task can cost, which tools it can use and which approvals it needs.

        Nothing is created.
        """
        body = creation(
            models.CreateTask,
            name=name,
            agent=agent,
            input=input,
            status=status,
            project_id=project_id,
            description=description,
            priority=priority,
            parent_task_id=parent_task_id,
            output_schema=output_schema,
            budget_cents=budget_cents,
            deadline=deadline,
            dry_run=True,
        )
        return (await self._call(_QUOTE, body=body)).quote

    async def create_batch(
        self,
        tasks: Sequence[models.BatchTask | Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
    ) -> TaskResults:
        """Creates up to 1,000 tasks. Each result has a task or an error, in the same order."""
        body = models.CreateTasks(tasks=bodies(models.BatchTask, tasks))
        response = await self._call(
            operations.create_tasks, body=body, idempotency_key=idempotency_key
        )
        return [task_result(each) for each in response.results]

    def list(
        self,
        *,
        status: models.TaskStatus | Sequence[models.TaskStatus] | None = None,
        project_id: str | None = None,
        parent_task_id: str | None = None,
        agent: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        q: str | None = None,
        page_size: int | None = None,
    ) -> AsyncPages[models.Task]:
        """The tasks that match every filter, newest first.

        Long texts can be cut on a page: `truncated` of a task names them. `get` returns the whole
        task.
        """
        query = parameters(
            status=status,
            projectId=project_id,
            parentTaskId=parent_task_id,
            agent=agent,
            createdAfter=created_after,
            createdBefore=created_before,
            q=q,
        )
        return self._offset_list(
            operations.list_tasks, lambda r: r.tasks, page_size, lambda task: task.id, query=query
        )

    async def get(self, task: TaskRef) -> models.Task:
        return (await self._call(operations.get_task, {"id": id_of(task)})).task

    async def update(
        self,
        task: TaskRef,
        *,
        name: str | Unset = UNSET,
        description: str | Unset | None = UNSET,
        priority: float | Unset = UNSET,
        project_id: str | Unset | None = UNSET,
        parent_task_id: str | Unset | None = UNSET,
        status: models.TaskStatus | Unset = UNSET,
        output: str | Unset | None = UNSET,
        logs: str | Unset = UNSET,
        actions: Sequence[str] | Unset = UNSET,
        deadline: datetime | Unset | None = UNSET,
        error: models.ReportedError | Mapping[str, Any] | Unset = UNSET,
    ) -> models.Task:
        """Changes the fields that are given. None clears a field.

        `logs` and `actions` are appended. If the response to such a change is lost, it is not sent
        again, because it could be appended twice.
        """
        body = change(
            models.PatchTask,
            name=name,
            description=description,
            priority=priority,
            project_id=project_id,
            parent_task_id=parent_task_id,
            status=status,
            output=output,
            logs=logs,
            actions=actions,
            deadline=deadline,
            error=error,
        )
        response = await self._call(
            operations.patch_task,
            {"id": id_of(task)},
            body=body,
            is_repeatable=logs is UNSET and actions is UNSET,
        )
        return response.task

    async def cancel(self, task: TaskRef) -> models.Task:
        """Cancels the task, its run and its subtasks."""
        return await self.update(task, status="CANCELLED")

    async def review(self, task: TaskRef) -> models.Review:
        """What waits for a person, and what was decided before."""
        return (await self._call(operations.review_task, {"id": id_of(task)})).review

    async def approve(
        self,
        task: TaskRef,
        *,
        review: ShownReview,
        decisions: Sequence[models.Decision | Mapping[str, Any]] | None = None,
        idempotency_key: str | None = None,
    ) -> models.DecisionResponse:
        """Approves what the review shows, or only the items in `decisions`.

        `review` is the review that a person looked at. If something else waits by then, nothing is
        decided and StaleReviewError has the review that waits now.

        `decisions` approves only the items that it names, so name every item that you approve. If
        `review.state` of the response is `pending`, something still waits: an item that you did not
        name, or, if the policies require a second person, a new review of your arguments, and
        nothing is approved.
        """
        body = creation(
            models.ApproveTask,
            review=review_shown(review),
            decisions=None if decisions is None else bodies(models.Decision, decisions),
        )
        path = {"id": id_of(task)}
        return await self._call(
            operations.approve_task, path, body=body, idempotency_key=idempotency_key
        )

    async def reject(
        self,
        task: TaskRef,
        *,
        review: ShownReview,
        reason: str | None = None,
        resume: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.DecisionResponse:
        """Rejects what the review shows. With `resume`, the agent continues with the reason."""
        body = creation(
            models.RejectTask, review=review_shown(review), reason=reason, resume=resume
        )
        path = {"id": id_of(task)}
        return await self._call(
            operations.reject_task, path, body=body, idempotency_key=idempotency_key
        )

    async def snooze(self, task: TaskRef, *, until: datetime | None) -> datetime | None:
        """Hides the task from the caller's list of approvals until then. None shows it again."""
        body = change(models.SnoozeTask, until=until)
        response = await self._call(operations.snooze_task, {"id": id_of(task)}, body=body)
        return response.snoozed_until

    async def retry(
        self,
        task: TaskRef,
        *,
        from_: Literal["start", "failure"] | None = None,
        idempotency_key: str | None = None,
    ) -> models.Task:
        """Runs a failed task again. From `failure`, finished steps are kept and not paid again."""
        body = creation(models.RetryTask, from_=from_)
        path = {"id": id_of(task)}
        response = await self._call(
            operations.retry_task, path, body=body, idempotency_key=idempotency_key
        )
        return response.task

    async def quote_retry(self, task: TaskRef) -> models.RetryQuote:
        """What a retry would do and cost."""
        return (await self._call(operations.quote_retry, {"id": id_of(task)})).retry

    async def fork(
        self,
        task: TaskRef,
        *,
        from_step: int,
        agent_version: int | None = None,
        model: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Task:
        """Creates a task that takes the steps of this one up to `from_step` and continues."""
        body = creation(
            models.ForkTask, from_step=from_step, agent_version=agent_version, model=model
        )
        path = {"id": id_of(task)}
        response = await self._call(
            operations.fork_task, path, body=body, idempotency_key=idempotency_key
        )
        return response.task

    async def quote_fork(
        self,
        task: TaskRef,
        *,
        from_step: int,
        agent_version: int | None = None,
        model: str | None = None,
    ) -> models.Quote:
        """What a fork can cost, which tools it can use and which approvals it needs.

        Nothing is created.
        """
        body = creation(
            models.ForkTask,
            from_step=from_step,
            agent_version=agent_version,
            model=model,
            dry_run=True,
        )
        return (await self._call(_FORK_QUOTE, {"id": id_of(task)}, body=body)).quote

    async def fork_options(self, task: TaskRef) -> models.ForkOptions:
        """The steps, versions and models that a fork can use."""
        return (await self._call(operations.fork_options, {"id": id_of(task)})).fork

    def timeline(
        self, task: TaskRef, *, page_size: int | None = None
    ) -> AsyncPages[models.TimelineStep]:
        """Each model call, tool call and approval of the task, oldest first."""
        path = {"id": id_of(task)}
        return self._offset_list(
            operations.task_timeline, lambda r: r.steps, page_size, lambda step: step.id, path
        )

    async def receipt(self, task: TaskRef) -> models.ReceiptResponse:
        """What the task did, who decided about it and what it cost, in one signed document.

        `rota receipt verify` checks it.
        """
        return await self._call(operations.task_receipt, {"id": id_of(task)})

    def follow(self, task: TaskRef, *, after: int | None = None) -> AsyncTaskEvents:
        """The events of the task, from the first one or after a sequence number, until it ends.

        Every event comes once and in order, however often the connection breaks. Between them come
        `TextDelta` and `TextSnapshot`: the text of a model while it is written.
        """
        task_id = id_of(task)
        request = Request.of(operations.task_events, {"id": task_id})
        return AsyncTaskEvents(self._transport, request, decoded, after, task_id)

    async def wait(
        self,
        task: TaskRef,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        until_review: bool = False,
    ) -> models.Task:
        """The task when it has ended. With `until_review`, also when it waits for a person.

        A failed task raises nothing: check `status` and `error` of what is returned.
        After `timeout` seconds, it raises WaitTimeoutError and the task continues.
        """
        return await ended(self._transport, id_of(task), timeout, until_review=until_review)


class Approvals(AsyncResource):
    def list(
        self,
        *,
        agent: str | None = None,
        gate: models.Gate | None = None,
        page_size: int | None = None,
    ) -> AsyncPages[models.Approval]:
        """Everything that waits for a person, longest wait first.

        While you read it, what is decided leaves the list and what is new joins it. If as many
        join as leave between two pages, some items can be missing. Read the list again to see
        them: what still waits is in it.

        If `truncated` is true, read the whole review with `tasks.review` before you decide.
        """
        return self._offset_list(
            operations.list_approvals,
            lambda r: r.approvals,
            page_size,
            lambda approval: (approval.task.id, approval.review.number),
            query=parameters(agent=agent, gate=gate),
        )


# A dry run is not stored, so it has no Idempotency-Key, and its response is a quote.
_QUOTE: Operation[models.QuoteResponse] = Operation(
    operations.create_task.method, operations.create_task.path, models.QuoteResponse, is_keyed=False
)
_FORK_QUOTE: Operation[models.QuoteResponse] = Operation(
    operations.fork_task.method, operations.fork_task.path, models.QuoteResponse, is_keyed=False
)
