"""The command `rota inbox`: keys in, decisions out. Every decision names what was shown."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rota.cli.exits import ExitCode, fail
from rota.cli.inbox.keyboard import Keyboard
from rota.cli.inbox.state import Opened, State, View
from rota.cli.output import print_json, print_note
from rota.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from rota_sdk import Review, Rota, RotaError, Task

# Without events, the list is read again after this time.
REFRESH_S = 15.0
# With many events, not more often than this.
BETWEEN_S = 1.5
# The list is read while the person works, so a slow service must not stop the keys for long.
LIST_TIMEOUT_S = 5.0
MOST = 200
PAGE = 10
EVENTS = (
    *("task.waiting_approval", "task.approved", "task.rejected", "task.cancelled"),
    *("task.completed", "task.failed", "task.updated"),
)


def inbox(session: Session) -> None:
    """Review what waits for a person: see it, edit it, approve or reject it.

    The list is live. An approval is for exactly what is shown: if something else waits by then,
    nothing is decided. With --json, the command prints the list and exits.
    """
    if session.as_json:
        approvals = list(session.client.approvals.list())
        print_json({"approvals": approvals, "total": len(approvals)})
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
        self._reader = client.with_options(timeout=LIST_TIMEOUT_S, max_retries=0)
        # A thread reads events with it until the process ends. Nothing else uses or closes it.
        self._watcher = watcher
        self._keyboard = keyboard
        self.state = State()
        self._is_stale = threading.Event()
        self._read_at = 0.0
        # The ID of the task whose decision is being sent.
        self._deciding: str | None = None
        self._live: Live
        self._console: Console

    def run(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, markup=False, emoji=False)
        self._reload(self._client)
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            with (
                _signals(self._keyboard),
                self._keyboard.raw(),
                Live(console=console, screen=True, auto_refresh=False) as live,
            ):
                self._live, self._console = live, console
                while self._step():
                    pass
        except KeyboardInterrupt:
            if self._deciding is not None:
                print_note(
                    "Interrupted. The decision may have been made. "
                    f"To see it: rota tasks review {self._deciding}"
                )
                raise

    def _step(self) -> bool:
        """Draws, and handles one key. Returns whether the inbox stays open."""
        state, before = self.state, self.state.drawn
        self._draw()
        if state.drawn != before and state.view in (View.REVIEW, View.CONFIRM):
            # Keys that were pressed before are not about this.
            self._keyboard.forget()
        key = self._keyboard.key(self._wait_s())
        if key is not None:
            return self._press(key)
        if not self._wait_s():
            self._refresh()
        return True

    def _draw(self) -> None:
        from rota.cli.inbox.screen import draw

        self._live.update(draw(self.state, self._console), refresh=True)
        self.state.drawn = (self.state.opened, self.state.view)

    def _wait_s(self) -> float:
        """How long the list is still current."""
        lasts_s = BETWEEN_S if self._is_stale.is_set() else REFRESH_S
        return max(0.0, self._read_at + lasts_s - time.monotonic())

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

    def _reload(self, client: "Rota") -> None:
        self._is_stale.clear()
        try:
            pages = client.approvals.list(page_size=100)
            found = []
            for approval in pages:
                found.append(approval)
                if len(found) >= MOST:
                    break
            total = pages.first_page().total if len(found) >= MOST else len(found)
            self.state.load(found, total)
        finally:
            self._read_at = time.monotonic()

    def _refresh(self) -> None:
        from rota_sdk import RotaError

        try:
            self._reload(self._reader)
            self.state.trouble = ""
        except RotaError as error:
            self.state.trouble = f"The list may be out of date: {_message(error)}"

    def _press(self, key: str) -> bool:
        """Whether the inbox stays open."""
        state = self.state
        if key == "interrupt":
            return False
        if state.view is View.REASON:
            self._type(key)
        elif state.view is View.CONFIRM:
            is_approved = key == "y" and state.can_approve
            state.view = View.REVIEW
            if is_approved:
                self._decide("Approving…", self._approve)
        elif key in ("up", "k", "down", "j", "page up", "page down", " "):
            by = PAGE if key in ("page up", "page down", " ") else 1
            state.move(-by if key in ("up", "k", "page up") else by)
        elif state.view is View.LIST:
            if key in ("q", "escape"):
                return False
            if key == "enter":
                self._attempt("Opening…", self._open)
        elif key in ("q", "escape"):
            state.close()
        elif key == "a":
            state.view, state.message = View.CONFIRM, ""
        elif key in ("r", "n"):
            state.ask_reason(resumes=key == "n")
        elif key == "e":
            self._edit()
        return True

    def _type(self, key: str) -> None:
        if key == "enter":
            self.state.view = View.REVIEW
            self._decide("Rejecting…", self._reject)
        elif key == "escape":
            self.state.view = View.REVIEW
        else:
            self.state.type(key)

    def _open(self) -> None:
        chosen = self.state.chosen
        if chosen is not None:
            # The list can have cut long texts. What a person decides about must be whole.
            self._show(chosen.task, self._client.tasks.review(chosen.task))

    def _show(self, task: "Task", review: "Review", message: str = "") -> None:
        if review.state == "pending" and review.number is not None:
            # The task is read after the review: see review_fields.
            self.state.open(self._client.tasks.get(task), review, message)
            return
        self.state.close("This task is no longer waiting for a review.")
        self._refresh()

    def _approve(self) -> None:
        opened = self._opened
        decisions = None
        if opened.edits:
            decisions = [
                {"id": item.id, **_changed(opened, item.id)}
                for item in opened.review.items
                if item.decision is None
            ]
        answer = self._client.tasks.approve(opened.task, review=opened.review, decisions=decisions)
        is_waiting = answer.review.state == "pending"
        self._decided("Saved for a second person to approve" if is_waiting else "Approved")

    def _reject(self) -> None:
        opened, state = self._opened, self.state
        self._client.tasks.reject(
            opened.task,
            review=opened.review,
            reason=state.reason.strip() or None,
            resume=state.resumes or None,
        )
        self._decided("Rejected")

    def _decided(self, what: str) -> None:
        # It is decided, whatever happens to the list.
        self.state.close(f"{what}: {self._opened.task.name}")
        self._refresh()

    def _edit(self) -> None:
        from rota.cli.inbox.editor import EditRefused, edited, is_same

        opened = self._opened
        items = {
            item.id: item.arguments
            for item in opened.review.items
            if item.arguments is not None and item.decision is None
        }
        if not items:
            self.state.message = "There is nothing to edit here."
            return
        edits, refusal = {**items, **opened.edits}, ""
        self._live.stop()
        try:
            with self._keyboard.paused():
                for place in items:
                    edits[place] = edited(edits[place])
        except EditRefused as error:
            refusal = str(error)
        finally:
            self._live.start()
        # What was edited before a refusal is kept.
        self.state.edit({each: new for each, new in edits.items() if not is_same(new, items[each])})
        self.state.message = refusal or self.state.message

    @property
    def _opened(self) -> Opened:
        assert self.state.opened is not None
        return self.state.opened

    def _decide(self, doing: str, work: Callable[[], None]) -> None:
        self._deciding = self._opened.task.id
        self._attempt(doing, work)
        self._deciding = None

    def _attempt(self, doing: str, work: Callable[[], None]) -> None:
        """Runs it, and shows errors as a message. Keys that are pressed meanwhile do nothing."""
        from rota_sdk import RotaError, StaleReviewError

        self.state.message = doing
        self._draw()
        self.state.message = ""
        try:
            work()
        except StaleReviewError as error:
            message = "The review has changed. Nothing was decided. Check it again."
            task, review = self._opened.task, error.review
            self._attempt(message, lambda: self._show(task, review, message))
        except RotaError as error:
            self.state.message = _message(error)
        self._keyboard.forget()


@contextmanager
def _signals(keyboard: Keyboard) -> Iterator[None]:
    """Draws again when the window changes, and restores the terminal when the process must end."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    handlers: dict[int, Callable[..., None]] = {
        signal.SIGWINCH: lambda *_: keyboard.wake(),
        signal.SIGTERM: end,
        signal.SIGHUP: end,
    }
    before = {number: signal.signal(number, each) for number, each in handlers.items()}
    try:
        yield
    finally:
        for number, each in before.items():
            signal.signal(number, each)


def _message(error: "RotaError") -> str:
    problems = [f"{each.field} {each.message}" for each in getattr(error, "fields", ())]
    return "; ".join(problems) or getattr(error, "message", str(error))


def _changed(opened: Opened, item_id: str) -> dict[str, object]:
    return {"arguments": opened.edits[item_id]} if item_id in opened.edits else {}
