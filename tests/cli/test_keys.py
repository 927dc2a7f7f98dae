"""Keys of the inbox: what terminals send, and that no key decides about what was not shown."""

import os
import pty
import select
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rota.cli.inbox import editor
from rota.cli.inbox.command import Inbox
from rota.cli.inbox.editor import EditRefused, edited
from rota.cli.inbox.keyboard import Keyboard, decoded
from rota_sdk.errors import APIConnectionError, RotaError, StaleReviewError
from rota_sdk.models import Review
from tests.cli import reviews


class Typist(Keyboard):
    """A terminal into which each text is pasted when all keys before it were handled."""

    def __init__(self, *pastes: bytes) -> None:
        self._terminal, self._slave = pty.openpty()
        super().__init__(self._slave)
        self._pastes = list(pastes)

    def paste(self, text: bytes) -> None:
        os.write(self._terminal, text)
        assert select.select([self._slave], [], [], 10)[0]

    def key(self, timeout_s: float) -> str | None:
        found = super().key(0)
        if found is not None:
            return found
        if not self._pastes:
            return "interrupt"
        self.paste(self._pastes.pop(0))
        return super().key(10)

    @property
    def is_usual(self) -> bool:
        """Whether programs get whole lines."""
        return bool(termios.tcgetattr(self._slave)[3] & termios.ICANON)


def tool_review(digest: str, *items: dict[str, Any]) -> Review:
    found = [reviews.item(**each) for each in items or ({},)]
    return reviews.review(gate="tool", digest=digest * 64).model_copy(update={"items": found})


def nothing() -> None:
    pass


class Office:
    """A client of a service that has one review."""

    def __init__(self) -> None:
        self.waiting = tool_review("a")
        self.approved: list[tuple[str, Any]] = []
        self.reasons: list[str | None] = []
        # What happens when a decision or the list arrives.
        self.on_decision: Callable[[], None] = nothing
        self.on_list: Callable[[], None] = nothing
        self.approvals = SimpleNamespace(list=self._list)
        self.events = SimpleNamespace(follow=self._follow)
        self.tasks = SimpleNamespace(
            review=lambda _: self.waiting,
            get=lambda _: reviews.task(),
            approve=self._approve,
            reject=self._reject,
        )

    def with_options(self, **_: Any) -> "Office":
        return self

    def review_with(self, keyboard: Keyboard) -> Inbox:
        client: Any = self
        inbox = Inbox(client, client, keyboard)
        inbox.run()
        return inbox

    def _list(self, **_: Any) -> list[Any]:
        self.on_list()
        return [SimpleNamespace(task=reviews.task(), review=self.waiting)]

    def _follow(self, **_: Any) -> None:
        raise RotaError

    def _approve(self, _: Any, *, review: Review, decisions: Any) -> SimpleNamespace:
        self.on_decision()
        assert review.digest is not None
        self.approved.append((review.digest[0], decisions))
        return SimpleNamespace(review=review.model_copy(update={"state": "approved"}))

    def _reject(self, _: Any, *, review: Review, reason: str | None, resume: Any) -> None:
        self.on_decision()
        self.reasons.append(reason)


def cut() -> None:
    raise APIConnectionError("The connection was cut.")


def test_keys_are_named_and_characters_stay() -> None:
    assert decoded("\x1b[Aaü\r\x7f") == (["up", "a", "ü", "enter", "backspace"], "")


@pytest.mark.parametrize(
    "sequence",
    ["\x1b[D", "\x1b[H", "\x1b[3~", "\x1b[15;2~", "\x1bOP", "\x1b[[A", "\x1ba", "\x1b\x1b[A"],
)
def test_other_keys_do_nothing_however_they_arrive(sequence: str) -> None:
    assert decoded(f"x{sequence}y") == (["x", "y"], "")
    for end in range(1, len(sequence)):
        found, rest = decoded(sequence[:end])
        assert (found, rest) == ([], sequence[:end])


def test_a_key_that_arrives_in_pieces_is_one_key() -> None:
    keyboard = Typist()
    with keyboard.raw():
        keyboard.paste("ü".encode()[:1])
        assert Keyboard.key(keyboard, 0) is None
        keyboard.paste("ü".encode()[1:])
        assert Keyboard.key(keyboard, 10) == "ü"
        keyboard.paste(b"\x1b")
        assert Keyboard.key(keyboard, 10) == "escape"


def test_pasted_keys_do_not_approve_what_they_open() -> None:
    office = Office()
    office.review_with(Typist(b"\ray"))
    office.review_with(Typist(b"\r", b"ay"))
    assert office.approved == []
    office.review_with(Typist(b"\r", b"a", b"y"))
    assert office.approved == [("a", None)]


def test_keys_that_wait_do_not_approve_another_review() -> None:
    office = Office()
    keyboard = Typist(b"\r", b"a", b"y")

    def change() -> None:
        office.on_decision = nothing
        keyboard.paste(b"ay")
        office.waiting = tool_review("b")
        details = {"review": office.waiting.model_dump(mode="json", by_alias=True)}
        raise StaleReviewError("Another review waits.", details=details)

    office.on_decision = change
    inbox = office.review_with(keyboard)
    assert office.approved == []
    assert inbox.state.opened is not None
    assert inbox.state.opened.review.digest == office.waiting.digest
    assert inbox.state.message.startswith("The review has changed.")


def test_a_decision_is_reported_even_if_the_list_cannot_be_read() -> None:
    office = Office()

    def decide() -> None:
        office.on_list = cut

    office.on_decision = decide
    inbox = office.review_with(Typist(b"\r", b"a", b"y"))
    assert office.approved == [("a", None)]
    assert inbox.state.message == "Approved: Answer Ada"
    assert inbox.state.trouble == "The list may be out of date: The connection was cut."


def test_a_typed_reason_survives_a_failure() -> None:
    office = Office()
    office.on_decision = cut
    inbox = office.review_with(Typist(b"\r", b"r", b"Too much", b"\r"))
    assert inbox.state.message == "The connection was cut."

    def fail_once() -> None:
        office.on_decision = nothing
        cut()

    office.on_decision = fail_once
    office.review_with(Typist(b"\r", b"r", b"Too much", b"\r", b"r", b".\r"))
    assert office.reasons == ["Too much."]


def test_an_interrupt_ends_a_request_that_hangs_and_restores_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    office, keyboard = Office(), Typist(b"\r", b"a", b"y")
    # Ctrl-C during the request.
    office.on_decision = lambda: signal.raise_signal(signal.SIGINT)
    with _interruptible(), pytest.raises(KeyboardInterrupt):
        office.review_with(keyboard)
    assert keyboard.is_usual
    assert "The decision may have been made." in capsys.readouterr().err
    office.on_decision = lambda: signal.raise_signal(signal.SIGTERM)
    keyboard = Typist(b"\r", b"a", b"y")
    with pytest.raises(SystemExit):
        office.review_with(keyboard)
    assert keyboard.is_usual


@contextmanager
def _interruptible() -> Iterator[None]:
    """A shell starts its background jobs with SIGINT ignored, and the tests may be one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def editing(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Iterator[None]:
    program = folder / "editor.py"
    program.write_text(script)
    with monkeypatch.context() as patch:
        patch.delenv("VISUAL", raising=False)
        patch.setenv("EDITOR", f"{sys.executable} {program}")
        yield


REPLACE = """
import pathlib, sys
file = pathlib.Path(sys.argv[1])
file.write_text(file.read_text().replace("1", "1.0"))
"""


def test_an_edit_to_another_type_is_an_edit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    office = Office()
    office.waiting = tool_review("a", {"arguments": {"amount": 1}})
    with editing(monkeypatch, tmp_path, REPLACE):
        office.review_with(Typist(b"\r", b"e", b"a", b"y"))
    [(_, decisions)] = office.approved
    assert [repr(each["arguments"]) for each in decisions] == ["{'amount': 1.0}"]


def test_the_editor_gets_a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, seen = Typist(b"\r", b"e"), []

    def look(arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append(keyboard.is_usual)
        return arguments

    monkeypatch.setattr(editor, "edited", look)
    Office().review_with(keyboard)
    assert seen == [True]


@pytest.mark.parametrize(
    ("command", "why"),
    [('vi "', "EDITOR is not a valid command"), ("/nowhere/vi", "Cannot start /nowhere/vi")],
)
def test_an_editor_that_cannot_start_is_an_error_message(
    monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    with pytest.raises(EditRefused, match=why):
        edited({})


def test_what_json_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('{\"n\": NaN}')"
    with editing(monkeypatch, tmp_path, script), pytest.raises(EditRefused, match="NaN"):
        edited({})


def test_a_folder_that_cannot_be_written_is_an_error_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(EditRefused, match="cannot be edited"):
        edited({})
