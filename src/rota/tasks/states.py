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


class By(StrEnum):
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
class Move:
    source: Status
    target: Status
    by: By
    # Whether it is for tasks that the service runs (True), for those that
    # their client drives (False), or for both (None).
    hosted: bool | None


MOVES: tuple[Move, ...] = (
    Move("PENDING", "RUNNING", By.RUN, True),
    Move("PENDING", "RUNNING", By.PATCH, False),
    Move("PENDING", "WAITING_APPROVAL", By.PATCH, False),
    Move("PENDING", "COMPLETED", By.PATCH, False),
    Move("PENDING", "FAILED", By.PATCH, False),
    Move("PENDING", "CANCELLED", By.CANCEL, None),
    Move("RUNNING", "WAITING_APPROVAL", By.RUN, True),
    Move("RUNNING", "WAITING_APPROVAL", By.PATCH, False),
    Move("RUNNING", "COMPLETED", By.RUN, True),
    Move("RUNNING", "COMPLETED", By.PATCH, False),
    Move("RUNNING", "FAILED", By.RUN, True),
    Move("RUNNING", "FAILED", By.PATCH, False),
    Move("RUNNING", "CANCELLED", By.CANCEL, None),
    Move("WAITING_APPROVAL", "PENDING", By.APPROVE_RUN, True),
    Move("WAITING_APPROVAL", "RUNNING", By.APPROVE_TOOL, True),
    Move("WAITING_APPROVAL", "RUNNING", By.APPROVE, False),
    Move("WAITING_APPROVAL", "RUNNING", By.REJECT_RESUME, None),
    Move("WAITING_APPROVAL", "COMPLETED", By.APPROVE_OUTPUT, True),
    Move("WAITING_APPROVAL", "CANCELLED", By.REJECT, None),
    Move("WAITING_APPROVAL", "CANCELLED", By.EXPIRE, None),
    Move("WAITING_APPROVAL", "CANCELLED", By.CANCEL, None),
    Move("FAILED", "PENDING", By.RETRY, None),
)

# What each way of approving leads to; None is a task without a gate, which its client drives.
APPROVAL_OF: dict[Gate | None, By] = {
    "run": By.APPROVE_RUN,
    "tool": By.APPROVE_TOOL,
    "output": By.APPROVE_OUTPUT,
    None: By.APPROVE,
}

EVENT_OF: dict[Status, str] = {
    "RUNNING": "task.started",
    "WAITING_APPROVAL": "task.waiting_approval",
    "COMPLETED": "task.completed",
    "FAILED": "task.failed",
    "CANCELLED": "task.cancelled",
}


class MoveRefused(Conflict):
    def __init__(self, source: Status, target: Status, why: str) -> None:
        super().__init__(f"A task that is {source} cannot become {target} here. {why}")


def target_of(source: Status, by: By, *, hosted: bool) -> Status | None:
    """Where a task goes from `source` when `by` happens, where that has one answer."""
    targets = [
        move.target
        for move in MOVES
        if move.source == source and move.by is by and move.hosted in (None, hosted)
    ]
    return targets[0] if len(targets) == 1 else None


def allows(source: Status, target: Status, by: By, *, hosted: bool) -> bool:
    return any(
        (move.source, move.target, move.by) == (source, target, by)
        and move.hosted in (None, hosted)
        for move in MOVES
    )


def mermaid_diagram() -> str:
    """The table as a picture: one arrow for each two states, whatever brings it about."""
    arrows: dict[tuple[Status, Status], list[str]] = {}
    for move in MOVES:
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
    lines += [f"| {m.source} | {m.target} | {m.by} | {whose[m.hosted]} |" for m in MOVES]
    return "\n".join(lines) + "\n"
