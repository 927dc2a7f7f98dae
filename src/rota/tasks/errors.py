"""Why a request about tasks is refused. Each error builds its message from the objects involved."""

from collections.abc import Iterable
from typing import Any

from rota.auth.errors import SecondPersonRequired
from rota.platform.errors import Conflict, FieldError, NotFound, ValidationFailed
from rota.tasks.model import ReviewItem, Task


class InvalidField(ValidationFailed):
    """One field of the request is wrong. `reason` is the message without the field's name."""

    def __init__(self, field: str, reason: str) -> None:
        invalid = ValidationFailed.of(FieldError(field, reason))
        super().__init__(invalid.message, details=invalid.details)
        self.field = field
        self.reason = reason


class TaskNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("Task not found.")


class ParentNotFound(NotFound):
    def __init__(self, parent_id: str) -> None:
        super().__init__(f"The parent task {parent_id!r} was not found. Check parentTaskId.")


class ParentEnded(Conflict):
    def __init__(self, parent: Task) -> None:
        super().__init__(
            f"The parent task is {parent.status}, so it cannot have open subtasks. Choose another "
            "parent."
        )


class ParentNotChangeable(Conflict):
    def __init__(self, task: Task) -> None:
        kind = "that the service runs" if task.hosted else f"that is {task.status}"
        super().__init__(
            f"A task {kind} cannot get another parent. Only a PENDING task that your client "
            "runs can."
        )


class ParentIsBelow(InvalidField):
    def __init__(self) -> None:
        super().__init__(
            "parentTaskId",
            "The new parent is the task itself or one of its subtasks. Choose another parent.",
        )


class NestingTooDeep(InvalidField):
    def __init__(self, max_depth: int) -> None:
        super().__init__(
            "parentTaskId",
            f"Tasks can be nested at most {max_depth} levels deep. Choose a parent at a higher "
            "level.",
        )


class AgentNotInCatalog(InvalidField):
    def __init__(self, name: str, field: str = "agent") -> None:
        super().__init__(field, f"The agent {name!r} is not in the catalog. Check the name.")


class AgentRetired(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"The agent {name} was removed from the catalog, so its tasks cannot be retried "
            "or forked. Create a task with another agent."
        )


class VersionNotFound(InvalidField):
    def __init__(self, name: str, version: int, newest: int) -> None:
        super().__init__(
            "agentVersion",
            f"The agent {name} has no version {version}. Its newest version is {newest}.",
        )


class TwoAgents(InvalidField):
    def __init__(self, agent: str, assigned_agent: str) -> None:
        super().__init__(
            "agent",
            f"agent ({agent!r}) and assignedAgent ({assigned_agent!r}) are two names for one "
            "field. Send only one of them.",
        )


class OptionNotHosted(InvalidField):
    def __init__(self, field: str) -> None:
        super().__init__(
            field,
            "Only a task that the service runs can have this. Name an agent, with the status "
            "PENDING or WAITING_APPROVAL.",
        )


class OutputSchemaUnusable(InvalidField):
    def __init__(self, problem: str) -> None:
        super().__init__("outputSchema", f"{problem[:1].upper()}{problem[1:]}. Correct it.")


class TooManySchemas(InvalidField):
    def __init__(self, limit: int) -> None:
        super().__init__(
            "tasks",
            f"The tasks of a batch can have at most {limit} different values of outputSchema. "
            "Send the others in another batch.",
        )


class BudgetAboveAgents(InvalidField):
    def __init__(self, agent: str, budget_cents: int) -> None:
        super().__init__(
            "budgetCents",
            f"The budget of the agent {agent} is {budget_cents} cents, and a task cannot have "
            "more. Send a lower budgetCents, or remove it.",
        )


class DeadlineInPast(InvalidField):
    def __init__(self) -> None:
        super().__init__("deadline", "The deadline must be in the future.")


class DeadlineNotWritable(Conflict):
    def __init__(self, task: Task) -> None:
        why = (
            f"The deadline of a task that is {task.status} cannot be changed."
            if task.hosted
            else "A task that your client runs has no deadline."
        )
        super().__init__(f"{why} Remove deadline from the request.")


class DeadlinePassed(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The deadline of the task has passed. Change or remove it with PATCH, then retry."
        )


class StepsDeleted(Conflict):
    def __init__(self, *, is_fork: bool) -> None:
        super().__init__(
            "The steps that this fork began with were deleted by the account's retention policy, "
            "so it cannot be retried. Create a new task."
            if is_fork
            else "The steps of the task were deleted by the account's retention policy, so the "
            "run cannot continue. Retry from the start."
        )


class OutputNotWritable(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The service runs this task and writes its output. Remove output and logs from the "
            "request."
        )


class ErrorNotWritable(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The service runs this task and reports its errors. Remove error from the request."
        )


class ErrorWithoutFailure(InvalidField):
    def __init__(self) -> None:
        super().__init__(
            "error",
            "Only a task that is or becomes FAILED can have an error. Remove error, or set status "
            "to FAILED.",
        )


class OutputTooLong(InvalidField):
    def __init__(self, length: int, max_length: int) -> None:
        super().__init__(
            "logs",
            f"With these logs, the output would have {length} characters. The maximum is "
            f"{max_length}. Send shorter logs.",
        )


class TextFrozen(Conflict):
    def __init__(self, task: Task) -> None:
        super().__init__(
            f"The task is {task.status}, so its name and description cannot change: they are what "
            "a person approves and what the agent works with. Cancel the task and create another, "
            "or change it after it has ended."
        )


class TooManyActions(InvalidField):
    def __init__(self, count: int, max_count: int) -> None:
        super().__init__(
            "actions",
            f"With these actions, the task would have {count}. The maximum is {max_count}. Send "
            "fewer actions.",
        )


class ActionsTooLarge(InvalidField):
    def __init__(self, size: int, max_size: int) -> None:
        super().__init__(
            "actions",
            f"With these actions, the log would have {size} bytes. The maximum is {max_size}. "
            "Send fewer or shorter actions.",
        )


class TextIncomplete(InvalidField):
    def __init__(self, field: str) -> None:
        super().__init__(
            field,
            "This text was truncated in a list. Read the task with GET /api/tasks/{id} "
            "and send that text.",
        )


class ItemsNotPending(InvalidField):
    def __init__(self, item_ids: Iterable[str]) -> None:
        super().__init__(
            "decisions",
            f"These items are not waiting for a decision: {', '.join(item_ids)}. "
            "GET /api/tasks/{id}/review lists the items that are.",
        )


class ItemDecided(Conflict):
    """Another decision about the item was made before."""

    def __init__(self, item: ReviewItem) -> None:
        how = "rejected" if item["decision"] == "rejected" else "approved with other arguments"
        super().__init__(
            f"The item {item['id']} was already {how}. "
            "GET /api/tasks/{id}/review shows the decision."
        )


class ItemNamedTwice(InvalidField):
    def __init__(self) -> None:
        super().__init__("decisions", "An item is named twice. Name each item once.")


class NotWaiting(Conflict):
    """The task does not wait for this decision. The response contains its newest review."""

    def __init__(self, task: Task, review: dict[str, Any]) -> None:
        state = review["state"]
        why = {
            "none": f"the task is {task.status} and is not waiting for a decision.",
            "pending": "its review has expired.",
            "approved": f"the task is {task.status}. Its newest review was approved with a "
            "decision that differs from yours.",
        }.get(state, f"the task is {task.status}. Its newest review is {state}.")
        shown = "" if state == "none" else " details.review shows its newest review."
        super().__init__(
            f"Your decision was not applied, because {why}{shown}", details={"review": review}
        )


class NothingWaits(Conflict):
    def __init__(self, task: Task) -> None:
        super().__init__(
            f"A task that is {task.status} does not wait for a decision, so there is nothing to "
            "snooze."
        )


class ServersDisconnected(Conflict):
    """A call waits for a tool server that was disconnected."""

    def __init__(self, names: Iterable[str]) -> None:
        servers = ", ".join(names)
        super().__init__(
            f"The call cannot be made, because its tool server was disconnected: {servers}. Reject "
            "the call. With `resume`, the agent continues without it."
        )


class DefinitionsNotAccepted(Conflict):
    """A call that needs a second person waits with a definition that is not accepted."""

    def __init__(self, tools: Iterable[str]) -> None:
        super().__init__(
            f"The definition that this review shows is not the accepted one: {', '.join(tools)}. "
            "Accept it first; then another person can approve the call. If another definition was "
            "accepted, reject the call. With `resume`, the agent can call the tool as it is now."
        )


class ReviewStale(Conflict):
    """The decision is not about the review that waits now. The response contains that review."""

    def __init__(self, review: dict[str, Any]) -> None:
        super().__init__(
            "The decision does not match the newest review, which details.review shows. "
            "Check it, then decide again with its number and digest.",
            details={"review": review},
        )


class ShapedByCaller(SecondPersonRequired):
    """Nobody approves what they shaped, in an account with this policy."""

    def __init__(self, how: Iterable[str], *, others: bool) -> None:
        reasons = sorted(how)
        did = "; you ".join(_SHAPED[each] for each in reasons)
        next_step = (
            "Ask another approver."
            if others
            else "All other approvers shaped it too, or there are none. Make another member an "
            "approver, or reject it."
        )
        super().__init__(
            f"This account requires a second person's approval: you {did}. {next_step}",
            details={"because": reasons},
        )


_SHAPED = {
    "created": "created this task, a task above it or the task that it was forked from",
    "edited": "changed what waits here, a task above it or one that it delegated",
    "retried": "retried this task, a task above it or one that it delegated",
    "scheduled": "saved the schedule of this task",
    "answered": "answered a question of the agent",
    "instructed": "told the agent what to do instead",
    "acceptedTool": "accepted the definition of the tool, or connected or changed its server",
    "madeRule": "made a standing rule that a call of this task used",
}


class InvalidArguments(ValidationFailed):
    """The arguments of a decision do not match the tool's schema."""

    def __init__(self, item_id: str, problems: Iterable[str]) -> None:
        field = f"decisions.{item_id}.arguments"
        invalid = ValidationFailed.of(*[FieldError(field, problem) for problem in problems])
        super().__init__(invalid.message, details=invalid.details)
