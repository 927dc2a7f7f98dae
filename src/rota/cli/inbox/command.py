"""The command `rota inbox`: keys in, decisions out. Every decision names what was shown."""

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from rota.cli.exits import ExitCode, fail
from rota.cli.inbox.keyboard import Keyboard
from rota.cli.inbox.state import Opened, State, View
from rota.cli.output import print_json
from rota.cli.session import Session

if TYPE_CHECKING:
    from rich.live import Live

    from rota_sdk import Review, Rota, Task

# Without events, the list is read again after this time.
REFRESH_S = 15.0
MOST = 200
PAGE = 10
EVENTS = (
    *("task.waiting_approval", "task.approved", "task.rejected", "task.cancelled"),
    *("task.completed", "task.failed", "task.updated", "task.started"),
)


def inbox(session: Session) -> None:
    """Review what waits for a person: see it, edit it, approve or reject it.

    The list is live. An approval is for exactly what is shown: if something else waits by then,
    nothing is decided. With --json, the command prints the list and exits.
    """
    if session.as_json:
        print_json({"approvals": list(session.client.approvals.list())})
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail(
            "rota inbox needs a terminal. Scripts use: rota inbox --json, rota tasks approve",
            ExitCode.USAGE,
        )
    Inbox(session.client, session.another_client(), Keyboard()).run()


class Inbox:
    def __init__(self, client: "Rota", watcher: "Rota", keyboard: Keyboard) -> None:
        self._client = client
        # A thread reads events with it until the process ends. Nobody else uses or closes it.
        self._watcher = watcher
        self._keyboard = keyboard
        self._state = State()
        self._is_stale = threading.Event()

    def run(self) -> None:
        from rich.console import Console
        from rich.live import Live

        from rota.cli.inbox.screen import draw

        console = Console(highlight=False, markup=False, emoji=False)
        self._reload()
        threading.Thread(target=self._watch, daemon=True).start()
        with (
            self._keyboard.raw(),
            Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                live.update(draw(self._state, console), refresh=True)
                keys = self._keyboard.keys(REFRESH_S)
                if not keys or self._is_stale.is_set():
                    self._is_stale.clear()
                    self._attempt(self._reload)
                for key in keys:
                    if not self._press(key, live):
                        return

    def _watch(self) -> None:
        """Wakes the screen when something changes. The stream continues by itself."""
        from rota_sdk import RotaError

        try:
            with self._watcher.events.follow(type=EVENTS) as events:
                for _ in events:
                    self._is_stale.set()
                    self._keyboard.wake()
        except RotaError:
            # The list is still read from time to time.
            return

    def _reload(self) -> None:
        pages = self._client.approvals.list(page_size=100)
        found = []
        for approval in pages:
            found.append(approval)
            if len(found) >= MOST:
                break
        total = pages.first_page().total if len(found) >= MOST else len(found)
        self._state.load(found, total)

    def _press(self, key: str, live: "Live") -> bool:
        """Whether the inbox stays open."""
        state = self._state
        if key == "interrupt":
            return False
        if state.view is View.REASON:
            self._type(key)
        elif state.view is View.CONFIRM:
            state.view = View.REVIEW
            if key == "y":
                self._attempt(self._approve)
        elif key in ("up", "k", "down", "j", "page up", "page down", " "):
            by = PAGE if key in ("page up", "page down", " ") else 1
            state.move(-by if key in ("up", "k", "page up") else by)
        elif state.view is View.LIST:
            if key in ("q", "escape"):
                return False
            if key == "enter":
                self._attempt(self._open)
        elif key in ("q", "escape"):
            state.close()
        elif key == "a":
            state.view, state.message = View.CONFIRM, ""
        elif key in ("r", "n"):
            state.ask_reason(resumes=key == "n")
        elif key == "e":
            self._edit(live)
        return True

    def _type(self, key: str) -> None:
        if key == "enter":
            self._state.view = View.REVIEW
            self._attempt(self._reject)
        elif key == "escape":
            self._state.view = View.REVIEW
        else:
            self._state.type(key)

    def _open(self) -> None:
        chosen = self._state.chosen
        if chosen is not None:
            # The list can have cut long texts. What a person decides about must be whole.
            self._show(chosen.task, self._client.tasks.review(chosen.task))

    def _show(self, task: "Task", review: "Review", message: str = "") -> None:
        if review.state == "pending" and review.number is not None:
            # The review of a task that a client runs is about the task's texts. They are read after
            # the review: if they changed between, the digest is the older one and decides nothing.
            self._state.open(self._client.tasks.get(task), review, message)
            return
        self._reload()
        self._state.close("Nothing waits in this task any more. Somebody else may have decided.")

    def _approve(self) -> None:
        opened = self._opened
        decisions = None
        if opened.edits:
            decisions = [
                {"id": item.id, **_changed(opened, item.id)} for item in opened.review.items
            ]
        self._client.tasks.approve(opened.task, review=opened.review, decisions=decisions)
        self._decided("Approved")

    def _reject(self) -> None:
        opened, state = self._opened, self._state
        self._client.tasks.reject(
            opened.task,
            review=opened.review,
            reason=state.reason.strip() or None,
            resume=state.resumes or None,
        )
        self._decided("Rejected")

    def _decided(self, what: str) -> None:
        name = self._opened.task.name
        self._reload()
        self._state.close(f"{what}: {name}")

    def _edit(self, live: "Live") -> None:
        from rota.cli.inbox.editor import EditRefused, edited

        opened = self._opened
        items = [item for item in opened.review.items if item.arguments is not None]
        if not items:
            self._state.message = "There is nothing to edit here."
            return
        live.stop()
        try:
            for item in items:
                before = opened.edits.get(item.id, item.arguments or {})
                after = edited(before)
                if after == item.arguments:
                    opened.edits.pop(item.id, None)
                else:
                    opened.edits[item.id] = after
            self._state.message = "Edited. Approve it with a." if opened.edits else ""
        except EditRefused as error:
            self._state.message = str(error)
        finally:
            live.start()

    @property
    def _opened(self) -> Opened:
        assert self._state.opened is not None
        return self._state.opened

    def _attempt(self, work: Callable[[], None]) -> None:
        """Runs it, and shows errors as a message."""
        from rota_sdk import RotaError, StaleReviewError

        try:
            work()
        except StaleReviewError as error:
            message = "Something else waits now. Nothing was decided. Look at it again."
            task, review = self._opened.task, error.review
            self._attempt(lambda: self._show(task, review, message))
        except RotaError as error:
            self._state.message = getattr(error, "message", str(error))


def _changed(opened: Opened, item_id: str) -> dict[str, object]:
    return {"arguments": opened.edits[item_id]} if item_id in opened.edits else {}
