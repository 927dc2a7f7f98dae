"""The states of a task and every move between them, as one table.

The service, the documentation and the tests all read this table. Whatever is
not in it is a conflict.
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
    """What brings a move about."""

    PATCH = "PATCH by the client"
    CANCEL = "PATCH to CANCELLED"
    APPROVE_RUN = "approve, run gate"
    APPROVE_TOOL = "approve, tool gate"
    APPROVE_OUTPUT = "approve, output gate"
    APPROVE = "approve"
    REJECT = "reject"
    REJECT_RESUME = "reject with `resume: true`"
    EXPIRE = "the gate's time runs out"
    RETRY = "retry"
    RUN = "the run"


@dataclass(frozen=True, slots=True)
class Transition:
    source: Status
    target: Status
    by: Trigger
    # Whether it is for tasks that the service runs (True), for those that
    # their client drives (False), or for both (None).
    hosted: bool | None


TRANSITIONS: tuple[Transition, ...] = (
    Transition("PENDING", "RUNNING", Trigger.RUN, True),
    Transition("PENDING", "RUNNING", Trigger.PATCH, False),
    Transition("PENDING", "WAITING_APPROVAL", Trigger.PATCH, False),
    Transition("PENDING", "COMPLETED", Trigger.PATCH, False),
    Transition("PENDING", "FAILED", Trigger.PATCH, False),
    Transition("PENDING", "CANCELLED", Trigger.CANCEL, None),
    Transition("RUNNING", "WAITING_APPROVAL", Trigger.RUN, True),
    Transition("RUNNING", "WAITING_APPROVAL", Trigger.PATCH, False),
    Transition("RUNNING", "COMPLETED", Trigger.RUN, True),
    Transition("RUNNING", "COMPLETED", Trigger.PATCH, False),
    Transition("RUNNING", "FAILED", Trigger.RUN, True),
    Transition("RUNNING", "FAILED", Trigger.PATCH, False),
    Transition("RUNNING", "CANCELLED", Trigger.CANCEL, None),
    Transition("WAITING_APPROVAL", "PENDING", Trigger.APPROVE_RUN, True),
    Transition("WAITING_APPROVAL", "RUNNING", Trigger.APPROVE_TOOL, True),
    Transition("WAITING_APPROVAL", "RUNNING", Trigger.APPROVE, False),
    Transition("WAITING_APPROVAL", "RUNNING", Trigger.REJECT_RESUME, None),
    Transition("WAITING_APPROVAL", "COMPLETED", Trigger.APPROVE_OUTPUT, True),
    Transition("WAITING_APPROVAL", "CANCELLED", Trigger.REJECT, None),
    Transition("WAITING_APPROVAL", "CANCELLED", Trigger.EXPIRE, None),
    Transition("WAITING_APPROVAL", "CANCELLED", Trigger.CANCEL, None),
    Transition("FAILED", "PENDING", Trigger.RETRY, None),
)

# What each way of approving leads to; None is a task without a gate, which its client drives.
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
    def __init__(self, source: Status, target: Status, why: str) -> None:
        super().__init__(f"A task that is {source} cannot become {target} here. {why}")


def target_of(source: Status, by: Trigger, *, hosted: bool) -> Status | None:
    """Where a task goes from `source` when `by` happens, where that has one answer."""
    targets = [
        move.target
        for move in TRANSITIONS
        if move.source == source and move.by is by and move.hosted in (None, hosted)
    ]
    return targets[0] if len(targets) == 1 else None


def allows(source: Status, target: Status, by: Trigger, *, hosted: bool) -> bool:
    return any(
        (move.source, move.target, move.by) == (source, target, by)
        and move.hosted in (None, hosted)
        for move in TRANSITIONS
    )


def mermaid_diagram() -> str:
    """The table as a picture: one arrow for each two states, whatever brings it about."""
    arrows: dict[tuple[Status, Status], list[str]] = {}
    for move in TRANSITIONS:
        # Mermaid takes a second colon for the end of the label.
        label = move.by.replace("`", "").replace(":", "")
        arrows.setdefault((move.source, move.target), []).append(label)
    lines = ["stateDiagram-v2", "    [*] --> PENDING: POST"]
    lines += [
        f"    {source} --> {target}: {' / '.join(dict.fromkeys(by))}"
        for (source, target), by in arrows.items()
    ]
    lines += [f"    {status} --> [*]" for status in STATUSES if status in FINAL]
    return "\n".join(lines) + "\n"


def markdown_table() -> str:
    """The table as the documentation shows it."""
    whose = {True: "hosted", False: "external", None: "both"}
    lines = ["| from | to | by | tasks |", "|---|---|---|---|", "| (new) | any | POST | both |"]
    lines += [f"| {m.source} | {m.target} | {m.by} | {whose[m.hosted]} |" for m in TRANSITIONS]
    return "\n".join(lines) + "\n"
