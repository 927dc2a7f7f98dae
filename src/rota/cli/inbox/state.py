"""What the inbox shows, and what keys do. It knows nothing of terminals."""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota_sdk.models import Approval, Review, Task


class View(Enum):
    LIST = "list"
    REVIEW = "review"
    CONFIRM = "confirm"
    REASON = "reason"


@dataclass(frozen=True, eq=False)
class Opened:
    """A review that a person looks at, exactly as the service sent it."""

    task: "Task"
    review: "Review"
    # The arguments of items that the person has changed, by the item's ID.
    edits: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class State:
    approvals: "list[Approval]" = field(default_factory=list)
    total: int = 0
    selected: int = 0
    view: View = View.LIST
    opened: Opened | None = None
    # The first line of the review that is visible.
    scroll: int = 0
    # What the screen shows. Nothing else can be approved.
    drawn: tuple[Opened | None, View] = (None, View.LIST)
    # What the person types as the reason, and whether the agent continues after the rejection.
    reason: str = ""
    resumes: bool = False
    message: str = ""
    # Why the list may be old.
    trouble: str = ""

    @property
    def chosen(self) -> "Approval | None":
        return self.approvals[self.selected] if self.approvals else None

    def load(self, approvals: "list[Approval]", total: int) -> None:
        """Keeps the same task selected, wherever it is now."""
        before = self.chosen
        self.approvals, self.total = approvals, total
        same = [
            place
            for place, each in enumerate(approvals)
            if before is not None and each.task.id == before.task.id
        ]
        last = max(0, len(approvals) - 1)
        self.selected = same[0] if same else min(self.selected, last)

    def move(self, by: int) -> None:
        if self.view is View.LIST:
            self.selected = max(0, min(self.selected + by, len(self.approvals) - 1))
        else:
            self.scroll = max(0, self.scroll + by)

    @property
    def can_approve(self) -> bool:
        """Whether the screen asks about exactly this review, with these edits."""
        return self.opened is not None and self.drawn == (self.opened, View.CONFIRM)

    def open(self, task: "Task", review: "Review", message: str = "") -> None:
        if self.opened is None or self.opened.task.id != task.id:
            self.reason = ""
        self.view, self.opened, self.scroll = View.REVIEW, Opened(task, review), 0
        self.message = message

    def edit(self, edits: dict[str, dict[str, Any]]) -> None:
        assert self.opened is not None
        self.opened = replace(self.opened, edits=edits)
        self.message = "Edited. Approve it with a." if edits else ""

    def close(self, message: str = "") -> None:
        self.view, self.opened, self.message = View.LIST, None, message

    def ask_reason(self, *, resumes: bool) -> None:
        """What was typed before is kept, because the rejection may have failed."""
        self.view, self.resumes, self.message = View.REASON, resumes, ""

    def type(self, key: str) -> None:
        if key == "backspace":
            self.reason = self.reason[:-1]
        elif len(key) == 1 and key.isprintable():
            self.reason += key
