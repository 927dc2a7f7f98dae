"""What is printed: the text of a model that is written again, errors as one line, times."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer

from rota.cli.exits import ExitCode, errors_as_one_line
from rota.cli.follow import Display
from rota.cli.profiles import ProfileError
from rota.cli.session import read_text
from rota.cli.text import ago
from rota_sdk import TextDelta, TextSnapshot, errors, models


def test_a_text_after_a_reconnect_is_not_printed_twice(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display()
    display.show(TextDelta(run=1, step=1, text="One, "))
    display.show(TextSnapshot(run=1, step=1, text="One, two, "))
    display.show(TextDelta(run=1, step=1, text="three."))
    # The model's call was repeated, and it wrote something else.
    display.show(TextSnapshot(run=1, step=1, text="Four."))
    display.show(TextDelta(run=1, step=2, text="Five."))
    display.end()
    # Only the output of the task goes to a standard output that is not a terminal.
    assert capsys.readouterr() == ("", "One, two, three.\nFour.\nFive.\n")


def _invalid() -> Exception:
    try:
        models.CreateTask.model_validate({"name": 5})
    except ValueError as error:
        return error
    raise AssertionError("a number is not a name")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (errors.RotaError("No.\nMore."), ExitCode.ERROR, "No."),
        (
            errors.APIConnectionError("Cut."),
            ExitCode.ERROR,
            "Cut. Check the URL, and check",
        ),
        (errors.NotFoundError("Not found.", request_id="r"), ExitCode.ERROR, "Not found. (request"),
        (errors.AuthenticationError("Expired."), ExitCode.ERROR, "Expired. To sign in again:"),
        (errors.ValidationError("Not valid."), ExitCode.USAGE, "Not valid."),
        (ProfileError("Cannot read it."), ExitCode.USAGE, "Cannot read it."),
        (ValueError("The id is empty."), ExitCode.USAGE, "The id is empty."),
        (_invalid(), ExitCode.USAGE, "name: Input should be a valid string"),
    ],
)
def test_every_error_is_one_line(
    capsys: pytest.CaptureFixture[str], error: Exception, code: ExitCode, line: str
) -> None:
    with pytest.raises(typer.Exit) as ended, errors_as_one_line():
        raise error
    assert ended.value.exit_code == code
    [printed] = capsys.readouterr().err.splitlines()
    assert printed.startswith(line)


def test_an_interrupted_command_ends_quietly() -> None:
    with pytest.raises(typer.Exit) as ended, errors_as_one_line():
        raise KeyboardInterrupt
    assert ended.value.exit_code == ExitCode.INTERRUPTED


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(typer.Exit):
        read_text(f"@{file}")


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=-3), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=61), "1 h"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(days=3), "3 d"),
    ],
)
def test_a_wait_is_shown_in_its_largest_unit(passed: timedelta, shown: str) -> None:
    now = datetime.now(UTC)
    assert ago(now - passed, now) == shown
