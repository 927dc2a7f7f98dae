"""The operations of the protocol, on the tasks and the event journal of this service.

Each calls the same function as the REST operation, with the same checks. Nothing here decides about
a review: a task that waits for a person says where the person decides.
"""

import contextlib
from collections.abc import AsyncGenerator

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import InvalidParamsError, UnsupportedOperationError
from starlette.requests import Request

from rota.a2a.assembly import PATH
from rota.a2a.cards import Cards
from rota.a2a.creating import Creating
from rota.a2a.errors import refused, reported
from rota.a2a.listing import Listing, check_status
from rota.a2a.messages import check_configuration, new_work, no_push
from rota.a2a.results import Presenter, Update, context_of
from rota.auth.access_tokens import AccessTokens, check_program, still_allowed
from rota.auth.caller import Caller
from rota.auth.routing import allowed, renewed_caller
from rota.events.messages import StillAllowed
from rota.platform import ids
from rota.platform.errors import FieldError, ValidationFailed
from rota.tasks.bodies import PatchTask
from rota.tasks.errors import TaskNotFound
from rota.tasks.following import Following, Known
from rota.tasks.model import Task
from rota.tasks.service import Tasks
from rota.tasks.states import TERMINAL

# A call that waits for a task returns it after this time, however far it is.
MAX_WAIT_S = 300
# Where a context has the HTTP request, and the parameters as the client has sent them.
REQUEST = "request"
SENT = "sent"

READER = allowed("tasks:read")
WRITER = allowed("tasks:write")

Context = ServerCallContext
Events = AsyncGenerator[wire.Task | Update]


class Handler(RequestHandler):
    def __init__(
        self,
        tasks: Tasks,
        creating: Creating,
        listing: Listing,
        following: Following,
        presenter: Presenter,
        cards: Cards,
        credentials: AccessTokens,
    ) -> None:
        self._tasks = tasks
        self._creating = creating
        self._listing = listing
        self._following = following
        self._presenter = presenter
        self._cards = cards
        self._credentials = credentials

    async def on_message_send(
        self, params: wire.SendMessageRequest, context: Context
    ) -> wire.Task | wire.Message:
        with reported("SendMessage", context, params):
            history = _history(params.configuration)
            caller = await self._caller(context, WRITER)
            waits = not params.configuration.return_immediately
            with contextlib.ExitStack() as stack:
                if waits:
                    READER.check(caller)
                    # Before anything is created.
                    stack.enter_context(self._following.place(caller))
                known = await self._accepted(params, context, caller)
                task = await self._waited(context, caller, known) if waits else known.task
            return self._presenter.task(caller.account_id, task, history)

    async def on_message_send_stream(
        self, params: wire.SendMessageRequest, context: Context
    ) -> Events:
        with reported("SendStreamingMessage", context, params):
            history = _history(params.configuration)
            caller = READER.check(await self._caller(context, WRITER))
            with self._following.place(caller):
                known = await self._accepted(params, context, caller)
                async with contextlib.aclosing(
                    self._stream(context, caller, known, history)
                ) as events:
                    async for event in events:
                        yield event

    async def on_subscribe_to_task(
        self, params: wire.SubscribeToTaskRequest, context: Context
    ) -> Events:
        with reported("SubscribeToTask", context, params):
            caller = await self._caller(context, READER)
            with self._following.place(caller):
                known = await self._following.known(caller, ids.from_wire("task", params.id))
                _check_tenant(context, known.task)
                if known.task.status in TERMINAL:
                    raise refused(
                        UnsupportedOperationError,
                        f"The task is {known.task.status}, so there are no more updates. Read "
                        "its result with GetTask.",
                    )
                async with contextlib.aclosing(
                    self._stream(context, caller, known, None)
                ) as events:
                    async for event in events:
                        yield event

    async def on_get_task(self, params: wire.GetTaskRequest, context: Context) -> wire.Task:
        with reported("GetTask", context, params):
            history = _history(params)
            caller = await self._caller(context, READER)
            task = await self._tasks.get(caller, ids.from_wire("task", params.id))
            _check_tenant(context, task)
            return self._presenter.task(caller.account_id, task, history)

    async def on_list_tasks(
        self, params: wire.ListTasksRequest, context: Context
    ) -> wire.ListTasksResponse:
        with reported("ListTasks", context, params):
            # A list has only the messages that the client asks for.
            history = _history(params) or 0
            caller = await self._caller(context, READER)
            check_status(params, context.state[SENT].get("status"))
            found = await self._listing.page(caller, params, context.tenant or None)
            return wire.ListTasksResponse(
                tasks=[
                    self._presenter.task(caller.account_id, each, history) for each in found.tasks
                ],
                next_page_token=found.next_token,
                page_size=found.size,
                total_size=found.total,
            )

    async def on_cancel_task(self, params: wire.CancelTaskRequest, context: Context) -> wire.Task:
        with reported("CancelTask", context, params):
            caller = await self._caller(context, WRITER)
            task_id = ids.from_wire("task", params.id)
            if context.tenant:
                _check_tenant(context, await self._tasks.get(caller, task_id))
            body = PatchTask.model_validate({"status": "CANCELLED"})
            task = await self._tasks.patch(caller, task_id, body)
            return self._presenter.task(caller.account_id, task, None)

    async def on_get_extended_agent_card(
        self, params: wire.GetExtendedAgentCardRequest, context: Context
    ) -> wire.AgentCard:
        with reported("GetExtendedAgentCard", context):
            return await self.card(context)

    async def card(self, context: Context) -> wire.AgentCard:
        """The card for the caller's account, or of the agent that is the tenant."""
        caller, scope = await self._caller(context), context.state[REQUEST].scope
        if context.tenant:
            agent = await self._creating.agent(caller, scope, context.tenant)
            return self._cards.of_agent(agent, agent.use_for)
        return self._cards.extended(await self._creating.open_agents(caller, scope))

    async def on_create_task_push_notification_config(
        self, params: wire.TaskPushNotificationConfig, context: Context
    ) -> wire.TaskPushNotificationConfig:
        with reported("CreateTaskPushNotificationConfig", context):
            raise no_push()

    async def on_get_task_push_notification_config(
        self, params: wire.GetTaskPushNotificationConfigRequest, context: Context
    ) -> wire.TaskPushNotificationConfig:
        with reported("GetTaskPushNotificationConfig", context):
            raise no_push()

    async def on_list_task_push_notification_configs(
        self, params: wire.ListTaskPushNotificationConfigsRequest, context: Context
    ) -> wire.ListTaskPushNotificationConfigsResponse:
        with reported("ListTaskPushNotificationConfigs", context):
            raise no_push()

    async def on_delete_task_push_notification_config(
        self, params: wire.DeleteTaskPushNotificationConfigRequest, context: Context
    ) -> None:
        with reported("DeleteTaskPushNotificationConfig", context):
            raise no_push()

    async def _accepted(
        self, params: wire.SendMessageRequest, context: Context, caller: Caller
    ) -> Known:
        """The task of a message. A message to a task that exists changes nothing."""
        check_configuration(params)
        message = params.message
        if message.task_id:
            task = await self._tasks.get(
                READER.check(caller), ids.from_wire("task", message.task_id)
            )
            _check_tenant(context, task)
            raise self._not_continued(caller, task, message.context_id)
        work = new_work(params, context.tenant)
        return await self._creating.create(caller, context.state[REQUEST].scope, work)

    def _not_continued(self, caller: Caller, task: Task, context_id: str) -> Exception:
        if context_id and context_id != context_of(task):
            return refused(
                InvalidParamsError,
                f"The task has the contextId {context_of(task)}. Send that one, or none.",
            )
        if task.status == "WAITING_APPROVAL":
            url = self._presenter.review_url(caller.account_id, task)
            return refused(
                UnsupportedOperationError,
                f"The task waits for a person, who decides at {url}. A message cannot "
                "approve or reject it.",
                reviewUrl=url,
            )
        return refused(
            UnsupportedOperationError,
            f"The task is {task.status} and accepts no further messages. Send a message without "
            f"taskId and with the contextId {context_of(task)} to create another task.",
        )

    async def _waited(self, context: Context, caller: Caller, known: Known) -> Task:
        """The task when it ends or waits for a person, or when the time is over."""
        task = known.task
        if _ended_or_waiting(task):
            return task
        # Only for streams, the server notices by itself that the client has left.
        request: Request = context.state[REQUEST]
        allowed_still = self._still_allowed(context, caller)
        async with contextlib.aclosing(
            self._following.changes(
                caller, known, allowed_still, MAX_WAIT_S, request.is_disconnected
            )
        ) as changes:
            async for change in changes:
                task = change.task
                if _ended_or_waiting(task):
                    break
        return task

    async def _stream(
        self, context: Context, caller: Caller, known: Known, history: int | None
    ) -> Events:
        account_id, status = caller.account_id, known.task.status
        yield self._presenter.task(account_id, known.task, history)
        if status in TERMINAL:
            return
        async with contextlib.aclosing(
            self._following.changes(caller, known, self._still_allowed(context, caller))
        ) as changes:
            async for change in changes:
                for event in change.events:
                    status = event.data.get("status", status)
                    for update in self._presenter.updates(account_id, change.task, event, status):
                        yield update
                    # A person may have started a failed task again. Events of steps can come
                    # after the end.
                    if status in TERMINAL and change.task.status in TERMINAL:
                        return

    async def _caller(self, context: Context, needs: allowed | None = None) -> Caller:
        caller = check_program(await renewed_caller(context.state[REQUEST].scope), PATH)
        return caller if needs is None else needs.check(caller)

    def _still_allowed(self, context: Context, before: Caller) -> StillAllowed:
        request: Request = context.state[REQUEST]
        return still_allowed(self._credentials, request, PATH, before, READER)


def _ended_or_waiting(task: Task) -> bool:
    return task.status in TERMINAL or task.status == "WAITING_APPROVAL"


def _check_tenant(context: Context, task: Task) -> None:
    """An agent's URL shows only the tasks of this agent."""
    if context.tenant and task.agent != context.tenant:
        raise TaskNotFound


def _history(
    config: wire.SendMessageConfiguration | wire.GetTaskRequest | wire.ListTasksRequest,
) -> int | None:
    """How many messages the client wants at most. None if it does not say."""
    if config.history_length < 0:
        raise ValidationFailed.of(FieldError("historyLength", "must be 0 or more"))
    return config.history_length if config.HasField("history_length") else None
