"""Follows a task on the terminal: its events as lines, and the model's text while it is written."""

import sys
from typing import TYPE_CHECKING

from rota.cli.exits import BY_STATUS, ExitCode
from rota.cli.output import print_json, print_note, print_text
from rota.cli.text import safe, safe_line

if TYPE_CHECKING:
    from rota_sdk import Event, Rota, Task, TaskEvent, TextSnapshot
    from rota_sdk.models import Review

SENTENCES = {
    "task.created": "created",
    "task.started": "started",
    "task.waiting_approval": "waits for a person",
    "task.approved": "approved",
    "task.rejected": "rejected",
    "task.retried": "retried",
    "task.completed": "completed",
    "task.failed": "failed",
    "task.cancelled": "cancelled",
}


class Display:
    """Prints text in the order in which it is written, and events on standard error.

    If standard output is not a terminal, the text goes to standard error too: what a model writes
    between its steps, and an output that a person changes later, are not the result.
    """

    def __init__(self) -> None:
        self._stream = sys.stdout if sys.stdout.isatty() else sys.stderr
        # What was printed of the step that is being written.
        self._step: tuple[int, int] | None = None
        self._printed = ""
        # The text of the last step that is on standard output.
        self._last: str | None = None
        self.has_failed_calls = False

    def show(self, event: "TaskEvent") -> None:
        from rota_sdk import TextDelta, TextSnapshot

        if isinstance(event, TextDelta):
            self._begin((event.run, event.step))
            self._write(event.text)
        elif isinstance(event, TextSnapshot):
            self._replace(event)
        else:
            self._event(event)

    def end(self) -> None:
        if self._printed and not self._printed.endswith("\n"):
            self._print("\n")
        self._step, self._printed = None, ""

    def has_printed(self, output: str) -> bool:
        """Whether this is what standard output ends with."""
        return self._last is not None and self._last.strip() == output.strip()

    def _begin(self, step: tuple[int, int]) -> None:
        if step != self._step:
            self.end()
            self._step = step

    def _write(self, text: str) -> None:
        self._printed += text
        if self._stream is sys.stdout:
            self._last = self._printed
        self._print(text)

    def _print(self, text: str) -> None:
        self._stream.write(safe(text))
        self._stream.flush()

    def _replace(self, snapshot: "TextSnapshot") -> None:
        """What a terminal has printed stays, so only what is new follows."""
        self._begin((snapshot.run, snapshot.step))
        if snapshot.text.startswith(self._printed):
            self._write(snapshot.text[len(self._printed) :])
        else:
            self.end()
            self._begin((snapshot.run, snapshot.step))
            self._write(snapshot.text)

    def _event(self, event: "Event") -> None:
        line = _sentence(event)
        if event.data.get("tool") and event.data.get("outcome") == "failed":
            self.has_failed_calls = True
        if line is not None:
            self.end()
            print_note(f"· {line}")


def _sentence(event: "Event") -> str | None:
    if event.type in SENTENCES:
        reason = event.data.get("reason")
        return SENTENCES[event.type] + (f": {safe_line(str(reason))}" if reason else "")
    if not event.data.get("tool"):
        return None
    tool = f"{event.data.get('server') or 'rota'}/{event.data['tool']}"
    if event.type == "step.started":
        return safe_line(f"calls {tool}")
    if event.type == "step.finished" and event.data.get("outcome") != "ok":
        return safe_line(f"{tool} {event.data.get('outcome')}")
    return None


def follow(
    client: "Rota", task_id: str, *, as_json: bool, stops_at_review: bool, after: int | None = None
) -> ExitCode:
    """Follows the task to its end. Returns the exit code of its outcome."""
    display = Display()
    found: Task | None = None
    review: Review | None = None
    try:
        with client.tasks.follow(task_id, after=after) as events:
            for event in events:
                if as_json:
                    print_json(event, indent=None)
                else:
                    display.show(event)
                if event.type != "task.waiting_approval":
                    continue
                if stops_at_review:
                    if (waiting := _waiting(client, task_id, event)) is not None:
                        found, review = waiting
                        break
                elif not as_json:
                    print_note("  To decide: rota inbox")
            else:
                found = client.tasks.get(task_id)
    except KeyboardInterrupt:
        display.end()
        print_note(f"The task continues. To follow it again: rota tasks follow {task_id}")
        return ExitCode.INTERRUPTED
    assert found is not None
    if as_json:
        shown = {"task": found} if review is None else {"task": found, "review": review}
        print_json(shown, indent=None)
    else:
        display.end()
        if review is not None:
            print_note(f"  Review {review.number}: {safe_line(review.summary or '')}")
        print_outcome(found, display)
        if display.has_failed_calls:
            print_note(f"To see why calls failed: rota tasks show {task_id} --timeline")
    # A task can be retried after its last event. Then it has not ended, so this is not a success.
    return BY_STATUS.get(found.status, ExitCode.ERROR)


def _waiting(client: "Rota", task_id: str, event: "TaskEvent") -> "tuple[Task, Review] | None":
    """The task and what it waits for, if it waits since this event. The review of an older event
    is decided. Another review can have taken the place of the first one without an event."""
    found = client.tasks.get(task_id)
    if found.status != "WAITING_APPROVAL" or not hasattr(event, "sequence"):
        return None
    review = client.tasks.review(task_id)
    if review.state != "pending":
        return None
    later = client.events.list(after=event.sequence, type=[event.type], page_size=100)
    return None if any(each.task_id == task_id for each in later) else (found, review)


def print_outcome(task: "Task", display: Display) -> None:
    if task.error is not None:
        print_note(f"{task.error.code}: {task.error.message}")
    elif task.output_data is not None:
        print_json(task.output_data)
    elif task.output and not display.has_printed(task.output):
        print_text(task.output)
    print_note(f"{task.status} · {task.id} · ${task.usage.cost_usd}")
