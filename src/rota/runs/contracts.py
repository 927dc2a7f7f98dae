"""What the workflow, its activities and Temporal exchange: IDs and numbers, never text.

Histories store these names and values. Fields can be added, but not renamed or removed.
"""

from dataclasses import dataclass, field
from typing import Literal

# Runs that earlier versions started, and the checks of tool servers.
TASK_QUEUE = "rota-runs"
SLICES_QUEUE = "rota-slices"

# Registered names of the activities.
BEGIN, ADVANCE, FAIL, CALL_MODEL, CALL_TOOL = "begin", "look", "fail", "think", "act"
SLICE = "slice"

# Why a call failed on its last attempt: the type of the activity's error and the task's error code.
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
    # Retry from failure: the run starts with the finished steps of the run before it that began.
    resume: bool = False
    # If a worker sends no heartbeat for this long during a call, Temporal repeats the call.
    heartbeat_s: float = 15.0
    # The parent span, if tracing is enabled.
    trace: str | None = None
    # The number of the slice that carries the run. If the task has another one, the slice is late.
    fence: int | None = None
    # The task's fence before the first slice. None if an earlier version started the run.
    start_fence: int | None = None


@dataclass(frozen=True)
class CallInput:
    """One call of a run. Call 0 of a step is the model call, the others are tool calls."""

    run: RunInput
    step: int
    call: int = 0


@dataclass(frozen=True)
class FailInput:
    run: RunInput
    code: str
    message: str
    retryable: bool
    # The run fails only if it has no more finished calls than this.
    finished: int | None = None
    # The run fails only if its slices have raised the task's fence to this.
    at_fence: int | None = None


@dataclass(frozen=True)
class NextStep:
    """What a run does next.

    - `think`: call the model as step `step`.
    - `act`: make the tool calls `calls` of step `step`.
    - `wait`: wait until the run is woken.
    - `end`: the run is over.
    """

    kind: Literal["think", "act", "wait", "end"]
    step: int = 0
    calls: list[int] = field(default_factory=list)
    # The task's fence, if a run that should have failed goes on.
    fence: int | None = None


# A tool call returns this when it is finished; the other calls of its step decide what is next.
# It is `think` without a step: histories and workers of earlier versions know no other kind.
CALL_FINISHED = NextStep("think")


SliceKind = Literal["again", "wait", "end"]


@dataclass(frozen=True)
class SliceEnd:
    """How a slice ended, and what its run does next.

    - `again`: start another slice, after `after_s` seconds.
    - `wait`: wait until the run is woken.
    - `end`: the run is over.
    """

    kind: SliceKind
    # The finished calls of the run.
    finished: int = 0
    after_s: float = 0
    # Whether the slice ended early because its worker stops.
    stopped: bool = False
    # The fence of the slice. None if it did not begin.
    fence: int | None = None
