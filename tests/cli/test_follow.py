"""Following a task: what goes to standard output, and which exit code a script gets."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rota.cli.exits import ExitCode
from rota.cli.follow import follow
from rota_sdk import TextDelta
from rota_sdk.models import Event
from tests.cli import reviews


def event(kind: str) -> Event:
    fields: dict[str, Any] = {"type": kind, "data": {}, "sequence": 1, "task_id": None}
    return Event.model_construct(**fields)


class Service:
    """A client whose task has these events, and these states when it is read."""

    def __init__(self, events: list[Any], *states: str, output: str | None = None) -> None:
        self._events, self._states, self._output = events, list(states), output
        self.tasks = SimpleNamespace(follow=self._follow, get=self._get, review=self._review)
        self.events = SimpleNamespace(list=self._later)
        self.review = "pending"

    @contextmanager
    def _follow(self, _: Any, *, after: int | None) -> Iterator[Iterator[Any]]:
        yield iter(self._events)

    def _later(self, *, after: int, **_: Any) -> list[Any]:
        return [each for each in self._events if getattr(each, "sequence", 0) > after]

    def _get(self, _: Any) -> Any:
        return reviews.task(status=self._states.pop(0), output=self._output)

    def _review(self, _: Any) -> Any:
        return SimpleNamespace(state=self.review, number=2, summary="Send\x1b it")

    def follow(self, *, stops_at_review: bool = False) -> ExitCode:
        client: Any = self
        return follow(client, reviews.task().id, as_json=False, stops_at_review=stops_at_review)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


WAITED = [event("task.waiting_approval"), event("task.approved")]


def test_a_review_that_was_decided_long_ago_does_not_stop(
    capsys: pytest.CaptureFixture[str],
) -> None:
    service = Service([*WAITED, event("task.failed")], "RUNNING", "FAILED")
    assert service.follow(stops_at_review=True) is ExitCode.TASK_FAILED
    assert "· failed" in capsys.readouterr().err
    service = Service([*WAITED, event("task.waiting_approval")], "RUNNING", "WAITING_APPROVAL")
    assert service.follow(stops_at_review=True) is ExitCode.REVIEW_WAITS


def test_the_review_that_waits_now_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    service = Service([event("task.waiting_approval")], "WAITING_APPROVAL")
    assert service.follow(stops_at_review=True) is ExitCode.REVIEW_WAITS
    assert "  Review 2: Send⟨U+001B⟩ it\n" in capsys.readouterr().err


def test_a_review_that_is_decided_meanwhile_does_not_stop() -> None:
    service = Service([*WAITED, event("task.completed")], "WAITING_APPROVAL", "COMPLETED")
    service.review = "approved"
    assert service.follow(stops_at_review=True) is ExitCode.OK


def test_a_task_that_has_not_ended_is_no_success() -> None:
    assert Service([event("task.failed")], "PENDING").follow() is ExitCode.ERROR


def test_a_pipe_gets_only_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [TextDelta(run=1, step=1, text="I look it up."), TextDelta(run=1, step=2, text="Draft")]
    assert Service(texts, "COMPLETED", output="Final").follow() is ExitCode.OK
    printed = capsys.readouterr()
    assert printed.out == "Final\n"
    assert printed.err.startswith("I look it up.\nDraft\n")
    assert Service(texts, "CANCELLED").follow() is ExitCode.TASK_CANCELLED
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("output", "shown"), [("Draft", "Draft\n"), ("Final", "Draft\nFinal\n")])
def test_a_terminal_gets_an_output_once(
    monkeypatch: pytest.MonkeyPatch, output: str, shown: str
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    Service([TextDelta(run=1, step=1, text="Draft")], "COMPLETED", output=output).follow()
    assert screen.getvalue() == shown
