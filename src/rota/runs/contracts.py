"""What goes through the engine: ids and numbers, never texts. Fields can be added, not changed."""

from dataclasses import dataclass, field
from typing import Literal

TASK_QUEUE = "rota-runs"

# Why a call was not made, after as many attempts as it gets.
MODEL_UNAVAILABLE, TOOL_UNAVAILABLE, TOOL_FAILED = (
    "MODEL_UNAVAILABLE",
    "TOOL_UNAVAILABLE",
    "TOOL_FAILED",
)


def workflow_id(task_id: str, run: int) -> str:
    return f"run/{task_id}/{run}"


@dataclass(frozen=True)
class RunInput:
    """One run of one task."""

    account_id: str
    task_id: str
    run: int
    # From failure: the finished steps of the run before are taken over.
    resume: bool = False
    # A worker that is silent for this long in a model or tool call is taken for dead.
    heartbeat_s: float = 15.0
    # The span that this run belongs to, where traces are kept.
    trace: str | None = None


@dataclass(frozen=True)
class CallInput:
    """One call of a run: call 0 of a step is the model's, the others are tools'."""

    run: RunInput
    step: int
    call: int = 0


@dataclass(frozen=True)
class FailInput:
    run: RunInput
    code: str
    message: str
    retryable: bool


@dataclass(frozen=True)
class NextStep:
    """What a run does next, as the database has it."""

    kind: Literal["think", "act", "wait", "end"]
    step: int = 0
    calls: list[int] = field(default_factory=list)
