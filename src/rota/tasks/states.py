"""The statuses of a task and every allowed transition between them, in one table.

The service, the documentation and the tests use this table. Any other change of status is a
conflict.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from rota.platform.errors import Conflict

Status = Literal["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "WAITING_APPROVAL"]
STATUSES: tuple[Status, ...] = (
    "PENDING",
    "RUNNING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "WAITING_APPROVAL",
)
FINAL: frozenset[Status] = frozenset({"COMPLETED", "CANCELLED"})
TERMINAL: frozenset[Status] = FINAL | {"FAILED"}

Gate = Literal["run", "tool", "output"]


class Trigger(StrEnum):
    """What causes a transition."""

    PATCH = "PATCH by the client"
    CANCEL = "PATCH to CANCELLED"
    APPROVE_RUN = "approve at the `run` gate"
    APPROVE_TOOL = "approve at the `tool` gate"
    APPROVE_OUTPUT = "approve at the `output` gate"
    APPROVE = "approve"
    REJECT = "reject"
    REJECT_RESUME = "reject with `resume: true`"
    EXPIRE = "the gate expires"
    DEADLINE = "the deadline passes"
    RETRY = "retry"
    RUN = "the run"


@dataclass(frozen=True, slots=True)
class Transition:
    source: Status
    target: Status
    trigger: Trigger
    # True: only tasks that the service runs. False: only tasks that a client runs. None: both.
    hosted: bool | None


TRANSITIONS: tuple[Transition, ...] = (
    Transition("PENDING", "RUNNING", Trigger.RUN, True),
    Transition("PENDING", "RUNNING", Trigger.PATCH, False),
    Transition("PENDING", "WAITING_APPROVAL", Trigger.PATCH, False),
    Transition("PENDING", "COMPLETED", Trigger.PATCH, False),
    Transition("PENDING", "FAILED", Trigger.PATCH, False),
    # No worker was able to begin the run.
    Transition("PENDING", "FAILED", Trigger.RUN, True),
    Transition("PENDING", "FAILED", Trigger.DEADLINE, True),
    Transition("PENDING", "CANCELLED", Trigger.CANCEL, None),
    Transition("RUNNING", "WAITING_APPROVAL", Trigger.RUN, True),
    Transition("RUNNING", "WAITING_APPROVAL", Trigger.PATCH, False),
    Transition("RUNNING", "COMPLETED", Trigger.RUN, True),
    Transition("RUNNING", "COMPLETED", Trigger.PATCH, False),
    Transition("RUNNING", "FAILED", Trigger.RUN, True),
    Transition("RUNNING", "FAILED", Trigger.PATCH, False),
    Transition("RUNNING", "FAILED", Trigger.DEADLINE, True),
    Transition("RUNNING", "CANCELLED", Trigger.CANCEL, None),
    Transition("WAITING_APPROVAL", "PENDING", Trigger.APPROVE_RUN, True),
    Transition("WAITING_APPROVAL", "RUNNING", Trigger.APPROVE_TOOL, True),
    Transition("WAITING_APPROVAL", "RUNNING", Trigger.APPROVE, False),
    Transition("WAITING_APPROVAL", "RUNNING", Trigger.REJECT_RESUME, None),
    Transition("WAITING_APPROVAL", "COMPLETED", Trigger.APPROVE_OUTPUT, True),
    Transition("WAITING_APPROVAL", "FAILED", Trigger.DEADLINE, True),
    Transition("WAITING_APPROVAL", "CANCELLED", Trigger.REJECT, None),
    Transition("WAITING_APPROVAL", "CANCELLED", Trigger.EXPIRE, None),
    Transition("WAITING_APPROVAL", "CANCELLED", Trigger.CANCEL, None),
    Transition("FAILED", "PENDING", Trigger.RETRY, None),
    # From the start, or the work differs from the work that a person approved at the run gate.
    Transition("FAILED", "WAITING_APPROVAL", Trigger.RETRY, True),
)

# The trigger of an approval at each gate. External tasks have reviews without a gate (None).
APPROVAL_OF: dict[Gate | None, Trigger] = {
    "run": Trigger.APPROVE_RUN,
    "tool": Trigger.APPROVE_TOOL,
    "output": Trigger.APPROVE_OUTPUT,
    None: Trigger.APPROVE,
}

EVENT_OF: dict[Status, str] = {
    "RUNNING": "task.started",
    "WAITING_APPROVAL": "task.waiting_approval",
    "COMPLETED": "task.completed",
    "FAILED": "task.failed",
    "CANCELLED": "task.cancelled",
}


class TransitionRefused(Conflict):
    def __init__(self, source: Status, target: Status, advice: str) -> None:
        super().__init__(f"A task that is {source} cannot become {target}. {advice}")


def target_of(source: Status, trigger: Trigger, *, hosted: bool) -> Status | None:
    """The status that `trigger` leads to from `source`, if there is exactly one."""
    targets = [
        transition.target
        for transition in TRANSITIONS
        if transition.source == source
        and transition.trigger is trigger
        and transition.hosted in (None, hosted)
    ]
    return targets[0] if len(targets) == 1 else None


def allows(source: Status, target: Status, trigger: Trigger, *, hosted: bool) -> bool:
    return any(
        (transition.source, transition.target, transition.trigger) == (source, target, trigger)
        and transition.hosted in (None, hosted)
        for transition in TRANSITIONS
    )


def mermaid_diagram() -> str:
    """The table as a diagram, with one arrow for each pair of statuses."""
    arrows: dict[tuple[Status, Status], list[str]] = {}
    for transition in TRANSITIONS:
        # In Mermaid, a second colon ends the label.
        label = transition.trigger.replace("`", "").replace(":", "")
        arrows.setdefault((transition.source, transition.target), []).append(label)
    lines = ["stateDiagram-v2", "    [*] --> PENDING: POST"]
    lines += [
        f"    {source} --> {target}: {' / '.join(dict.fromkeys(labels))}"
        for (source, target), labels in arrows.items()
    ]
    lines += [f"    {status} --> [*]" for status in STATUSES if status in FINAL]
    return "\n".join(lines) + "\n"


def markdown_table() -> str:
    """The table as the documentation shows it."""
    kind = {True: "hosted", False: "external", None: "both"}
    lines = ["| from | to | by | tasks |", "|---|---|---|---|", "| (new) | any | POST | both |"]
    lines += [f"| {t.source} | {t.target} | {t.trigger} | {kind[t.hosted]} |" for t in TRANSITIONS]
    return "\n".join(lines) + "\n"
