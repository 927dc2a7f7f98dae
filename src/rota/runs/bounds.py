"""The limits of every run, and the errors of a run that reaches one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.platform import clock
from rota.runs.model_errors import GiveUp
from rota.runs.steps import Step
from rota.tasks.model import Task

# More than a model can read. Every run in progress holds its definitions in memory.
MAX_TOOLS_KIB = 1024


class StepLimitReached(GiveUp):
    code = "STEP_LIMIT"
    retryable = True

    def __init__(self, max_steps: int) -> None:
        super().__init__(
            f"The run reached its limit of {max_steps} steps. Retry the task from the failed step "
            "to continue. The limit then counts from zero."
        )
        self.max_steps = max_steps


class TokenLimitReached(GiveUp):
    code = "TOKEN_LIMIT"
    retryable = True

    def __init__(self, max_tokens: int) -> None:
        super().__init__(
            f"The run reached its limit of {max_tokens} tokens. Retry the task from the failed "
            "step to continue. The limit then counts from zero."
        )
        self.max_tokens = max_tokens


class TimeLimitReached(GiveUp):
    code = "TIME_LIMIT"
    retryable = True

    def __init__(self, max_time: timedelta) -> None:
        super().__init__(
            f"The run worked for longer than {max_time.total_seconds() / 3600:g} hours. Retry the "
            "task from the failed step to continue. The limit then counts from zero."
        )
        self.max_time = max_time


class ToolsTooLarge(GiveUp):
    code = "TOOLS_TOO_LARGE"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            f"The definitions of the tools that this agent can use are larger than {MAX_TOOLS_KIB} "
            "KiB in total. List only the tools that it needs in allowedTools of their servers, "
            "then retry the task."
        )


class DeadlineExceeded(GiveUp):
    code = "DEADLINE_EXCEEDED"

    def __init__(self, deadline: datetime) -> None:
        super().__init__(
            f"The task had not ended at its deadline, {clock.to_wire(deadline)}. To continue, "
            "change or remove the deadline with PATCH, then retry the task from the failed step."
        )


def is_past_deadline(task: Task) -> bool:
    return task.deadline is not None and task.deadline <= clock.now()


def check_deadline(task: Task) -> None:
    """Raises if the task's deadline has passed."""
    if task.deadline is not None and is_past_deadline(task):
        raise DeadlineExceeded(task.deadline)


def _tokens(row: Step) -> int:
    """The tokens that count. Every call reads the conversation again, mostly from a cache."""
    return row.input_tokens - row.cache_read_tokens + row.output_tokens


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of every run, whatever its agent's file says."""

    max_tokens: int
    max_time: timedelta

    def check(self, rows: Sequence[Step], max_steps: int, *, out_of_time: bool) -> None:
        """Raises if the run with these calls must not call the model again."""
        answers = (row for row in rows if row.kind == "model" and row.is_answered)
        if sum(not row.copied for row in answers) >= max_steps:
            raise StepLimitReached(max_steps)
        if sum(map(_tokens, rows)) >= self.max_tokens:
            raise TokenLimitReached(self.max_tokens)
        if out_of_time:
            raise TimeLimitReached(self.max_time)
