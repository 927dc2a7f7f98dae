"""Follows a task on the terminal: its events as lines, and the model's text while it is written."""

from typing import TYPE_CHECKING

from rota.cli.exits import BY_STATUS, ExitCode
from rota.cli.output import print_json, print_note, print_text
from rota.cli.text import safe_line

if TYPE_CHECKING:
    from rota_sdk import Event, Rota, Task, TaskEvent, TextSnapshot

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
    """Prints text in the order in which it is written. Events go to standard error, so a pipe
    gets what the model wrote."""

    def __init__(self) -> None:
        # What was printed of the step that is being written.
        self._step: tuple[int, int] | None = None
        self._printed = ""
        self.has_text = False

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
            print_text("")
        self._step, self._printed = None, ""

    def _begin(self, step: tuple[int, int]) -> None:
        if step != self._step:
            self.end()
            self._step = step

    def _write(self, text: str) -> None:
        self._printed += text
        self.has_text = True
        print_text(text, end="")

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
        if line is not None:
            self.end()
            print_note(f"· {line}")


def _sentence(event: "Event") -> str | None:
    if event.type in SENTENCES:
        reason = event.data.get("reason")
        return SENTENCES[event.type] + (f": {safe_line(str(reason))}" if reason else "")
    tool = event.data.get("tool")
    if event.type == "step.started" and tool:
        return safe_line(f"calls {event.data.get('server') or 'rota'}/{tool}")
    return None


def follow(client: "Rota", task: "Task", *, as_json: bool, stops_at_review: bool) -> ExitCode:
    """Follows the task to its end. Returns the exit code of its outcome."""
    display = Display()
    try:
        with client.tasks.follow(task) as events:
            for event in events:
                if as_json:
                    print_json(event, indent=None)
                else:
                    display.show(event)
                if event.type == "task.waiting_approval":
                    if stops_at_review:
                        break
                    if not as_json:
                        print_note("  To decide: rota inbox")
    except KeyboardInterrupt:
        display.end()
        print_note(f"The task goes on. To follow it again: rota tasks follow {task.id}")
        return ExitCode.INTERRUPTED
    found = client.tasks.get(task)
    if as_json:
        print_json({"task": found}, indent=None)
    else:
        display.end()
        print_outcome(found, has_text=display.has_text)
    return BY_STATUS.get(found.status, ExitCode.OK)


def print_outcome(task: "Task", *, has_text: bool) -> None:
    if task.error is not None:
        print_note(f"{task.error.code}: {task.error.message}")
    elif task.output_data is not None:
        print_json(task.output_data)
    elif task.output and not has_text:
        print_text(task.output)
    print_note(f"{task.status} · {task.id} · ${task.usage.cost_usd}")
