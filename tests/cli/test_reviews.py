"""A review shows everything that its digest covers, in the inbox and in `rota tasks review`."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from rota.cli.decisions import print_review
from rota.cli.inbox.screen import draw
from rota.cli.inbox.state import State
from rota.tasks import seals
from rota_sdk import models
from tests.cli import reviews


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    elif value is not None:
        yield str(value)


def screen(state: State, width: int = 200, height: int = 500) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, markup=False, emoji=False)
    console.print(draw(state, console))
    return out.getvalue()


def shown_everywhere(
    review: models.Review, task: models.Task, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    state = State()
    state.open(task, review)
    print_review(review, task)
    return [screen(state), capsys.readouterr().out]


def test_a_run_gate_shows_all_of_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    known = {field.alias for field in models.ReviewedWork.model_fields.values()}
    assert known == reviews.WORK.keys(), "Show the new field and add it to the test."
    review = reviews.review(gate="run", work=reviews.WORK | {"ofANewerService": "work-newer"})
    for text in shown_everywhere(review, reviews.task(), capsys):
        for part in [*leaves(reviews.WORK), "work-newer", review.digest]:
            assert str(part) in text


def test_a_tool_gate_shows_all_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    sealed = json.loads(
        seals.call(("srv_sealed", 51_001), "tool-name", "definition-hash", {"to": "argument"})
    )
    assert sealed.keys() == {"server", "tool", "definitionHash", "arguments"}
    item = reviews.item(
        tool=sealed["tool"],
        server="server-name",
        serverId=sealed["server"]["id"],
        serverRevision=sealed["server"]["revision"],
        definitionHash=sealed["definitionHash"],
        arguments=sealed["arguments"],
    )
    about = {
        "reason": "item-reason",
        "server_url": "https://server.example.com",
        "tool_title": "tool-title",
        "tool_description": "tool-description",
        "annotations": {"hint": "tool-annotation"},
        "agent_says": "agent-says",
        "definition_accepted": False,
    }
    review = reviews.review(gate="tool").model_copy(
        update={"items": [item.model_copy(update=about)]}
    )
    for text in shown_everywhere(review, reviews.task(), capsys):
        for part in [*leaves(sealed), *leaves({**about, "definition_accepted": "not accepted"})]:
            assert part in text


def test_a_task_that_a_client_runs_shows_its_texts(capsys: pytest.CaptureFixture[str]) -> None:
    texts = {name: f"task-{name}" for name in ("name", "description", "input", "output")}
    assert seals.external(reviews.task(**texts)) == {"texts": texts}  # type: ignore[arg-type]
    for text in shown_everywhere(reviews.review(), reviews.task(**texts), capsys):
        for part in texts.values():
            assert part in text


@pytest.mark.parametrize("message", ["", "A long message. " * 20])
def test_a_small_screen_says_how_much_is_below(message: str) -> None:
    state = State()
    state.open(reviews.task(input="Line\n" * 100), reviews.review(), message)
    text = screen(state, width=80, height=24)
    assert "more lines below)" in text
    assert "q back" in text
    assert len(text.splitlines()) == 24
    state.ask_reason(resumes=True)
    for letter in "The end of a long reason is visible. " * 5 + "Here":
        state.type(letter)
    text = screen(state, width=80, height=24)
    assert "Here█" in text
    assert len(text.splitlines()) == 24
