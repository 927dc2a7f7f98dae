"""What keys do in the inbox, without a terminal: the service is real."""

import sys
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from rota.cli.inbox.command import Inbox
from rota.cli.inbox.state import View
from rota_sdk import Rota
from tests.cli.conftest import url_of
from tests.cli.reviews import item, review, task
from tests.service import Person, Service
from tests.tasks.world import create, patch


class Keys:
    """Stands for the keyboard, and for the live screen."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def opened(office: Service, token: str) -> Any:
    client = Rota(base_url=url_of(office), api_key=token, max_retries=0)
    keys: Any = Keys()
    inbox: Any = Inbox(client, client, keys)
    inbox._live, inbox._console = keys, Console(file=StringIO())
    inbox._reload(client)
    return inbox


def press(inbox: Any, *keys: str) -> bool:
    """Presses each key after the screen is drawn. Returns whether the inbox stays open."""
    for key in keys:
        inbox._draw()
        if not inbox._press(key):
            return False
    return True


async def test_an_empty_inbox_opens_nothing_and_quits(office: Service, person: Person) -> None:
    inbox = opened(office, person.token)
    assert press(inbox, "enter", "down", "up", "x")
    assert inbox.state.view is View.LIST
    assert not press(inbox, "q")
    assert not press(inbox, "interrupt")


async def test_keys_go_back_without_a_decision(office: Service, person: Person) -> None:
    sent = await create(person, name="Send it", status="WAITING_APPROVAL")
    inbox = opened(office, person.token)
    assert press(inbox, "enter", "e")
    assert inbox.state.message == "There is nothing to edit here."
    press(inbox, "down", "page down", "up", "page up")
    assert inbox.state.scroll == 0
    press(inbox, "n", "N", "o", "backspace", "escape")
    assert (inbox.state.view, inbox.state.reason) == (View.REVIEW, "N")
    press(inbox, "a", "n", "escape")
    assert inbox.state.view is View.LIST
    found = (await person.get(f"/api/tasks/{sent['id']}")).json()["task"]
    assert found["status"] == "WAITING_APPROVAL"


async def test_what_somebody_else_has_decided_is_not_opened(
    office: Service, person: Person
) -> None:
    sent = await create(person, name="Send it", status="WAITING_APPROVAL")
    inbox = opened(office, person.token)
    await patch(person, sent["id"], status="CANCELLED")
    press(inbox, "enter")
    assert inbox.state.view is View.LIST
    assert inbox.state.message.startswith("This task is no longer waiting")
    assert inbox.state.total == 0


@pytest.mark.parametrize(
    ("state", "message"),
    [("approved", "Approved: "), ("pending", "Saved for a second person to approve: ")],
)
async def test_an_edit_that_a_second_person_has_to_approve_is_not_called_approved(
    office: Service, person: Person, state: str, message: str
) -> None:
    inbox = opened(office, person.token)
    inbox.state.open(task(), review(items=[item()]))
    answer = SimpleNamespace(review=review(number=2, state=state))
    inbox._client = SimpleNamespace(tasks=SimpleNamespace(approve=lambda *_, **__: answer))
    press(inbox, "a", "y")
    assert inbox.state.message == f"{message}Answer Ada"


async def test_a_refused_decision_is_a_message(office: Service, person: Person) -> None:
    await create(person, name="Send it", status="WAITING_APPROVAL")
    # A key without the scope tasks:approve.
    secret = (await person.post("/api/keys", {"name": "reader"})).json()["secret"]
    inbox = opened(office, secret)
    press(inbox, "enter", "a", "y")
    assert "tasks:approve" in inbox.state.message
    assert inbox.state.view is View.REVIEW


async def test_a_stream_that_is_refused_leaves_the_list_working(
    office: Service, person: Person
) -> None:
    inbox = opened(office, person.token)
    inbox._watcher = Rota(base_url=url_of(office), api_key="rota_wrong", max_retries=0)
    inbox._watch()
    inbox._refresh()
    assert not inbox.state.trouble
    assert inbox.state.approvals == []


async def test_a_long_list_is_counted_but_not_loaded(
    office: Service, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["rota.cli.inbox.command"], "MOST", 1)
    for number in range(2):
        await create(person, name=f"Task {number}", status="WAITING_APPROVAL")
    inbox = opened(office, person.token)
    assert (len(inbox.state.approvals), inbox.state.total) == (1, 2)


async def test_the_edit_of_one_call_is_kept_if_that_of_the_next_is_refused(
    office: Service, person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\n! grep -q refused "$1" && sed -i s/first/second/ "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    inbox = opened(office, person.token)
    inbox._keyboard.paused = nullcontext
    calls = [item(id="call-1"), item(id="call-2", arguments={"ref": "refused"})]
    inbox.state.open(task(), review(items=calls))
    press(inbox, "e")
    assert inbox.state.opened.edits == {"call-1": {"ref": "second"}}
    assert inbox.state.message == f"{editor} failed, so the arguments stay as they were."
