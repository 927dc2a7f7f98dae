"""What is printed: the text of a model that is written again, errors as one line, times."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import typer

from rota.cli.exits import ExitCode, errors_as_one_line
from rota.cli.follow import Display
from rota.cli.output import page_size, print_list
from rota.cli.profiles import ProfileError
from rota.cli.session import read_text
from rota.cli.text import ago
from rota_sdk import Rota, TextDelta, TextSnapshot, errors, models
from tests.sdk.test_contract import DESCRIPTIONS


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
        (errors.ValidationError("Not valid."), ExitCode.ERROR, "Not valid."),
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


@pytest.mark.parametrize(
    ("limit", "note", "offsets"),
    [
        (20, "20 of 1,250. --limit shows more.\n", [0]),
        # The first page says whether there are more. Then all of them are read.
        (150, "150 of 1,250. --limit shows more.\n", [0, 0, 100]),
        (2000, "", [0, *range(0, 1300, 100)]),
    ],
)
def test_a_list_reads_only_the_pages_that_it_shows(
    capsys: pytest.CaptureFixture[str], limit: int, note: str, offsets: list[int]
) -> None:
    task = DESCRIPTIONS["a"]["components"]["examples"]["TaskResponse"]["value"]["task"]
    read: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        first, size = (int(request.url.params[name]) for name in ("offset", "limit"))
        read.append(first)
        page = [task | {"id": f"task_{n}"} for n in range(first, min(first + size, 1250))]
        return httpx.Response(200, json={"tasks": page, "total": 1250})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    pages = Rota(base_url="http://x", api_key="k", http_client=http).tasks.list(
        page_size=page_size(limit)
    )
    print_list("tasks", pages, limit, ("ID",), lambda each: (each.id,), "", as_json=False)
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == min(limit, 1250) + 1
    assert (printed.err, read) == (note, offsets)


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
