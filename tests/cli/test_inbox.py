"""The inbox in a real terminal: see, edit, approve, reject, and what happens to a stale review."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.cli.conftest import url_of
from tests.cli.terminal import Terminal
from tests.runs.runner import CATALOG, Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.tasks.world import create, patch

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Runner.start(stack, scripted, "cli_inbox", log) as started:
        await sync(started.service.database_url, CATALOG)
        yield started


class Screen:
    """`rota inbox` in tmux, on a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ("tmux", "-S", self._socket, "-f", os.devnull, *arguments),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def start(self, variables: dict[str, str]) -> None:
        given = [f"-e{name}={value}" for name, value in variables.items()]
        # Ctrl-C is for the inbox. The terminal stays open, so what it left there can be seen.
        script = 'trap : INT; "$0" -m rota.cli inbox; echo "Exit code: $?"; exec sleep 600'
        command = ("sh", "-c", script, sys.executable)
        self.tmux("new-session", "-d", "-x", "120", "-y", "40", *given, *command)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    async def shows(self, *texts: str, without: str | None = None) -> str:
        async def look() -> str:
            return await asyncio.to_thread(self.tmux, "capture-pane", "-p")

        return await until(
            look,
            lambda seen: (
                all(text in seen for text in texts) and (not without or without not in seen)
            ),
        )


@pytest.fixture
async def person(runner: Runner) -> Person:
    return await runner.service.sign_in()


@pytest.fixture
async def screen(
    runner: Runner, person: Person, terminal: Terminal, tmp_path: Path
) -> AsyncIterator[Screen]:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/first/second/ "$1"\n')
    editor.chmod(0o755)
    opened = Screen(tmp_path)
    variables = {
        "ROTA_URL": url_of(runner.service),
        "ROTA_API_KEY": person.token,
        "XDG_CONFIG_HOME": str(terminal.home),
        "EDITOR": str(editor),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "LANG": "C.UTF-8",
        # pytest has them from readline. They count more than the size of the window.
        "LINES": "",
        "COLUMNS": "",
    }
    opened.start(variables)
    yield opened
    opened.tmux("kill-server")


async def status(person: Person, task: dict[str, Any]) -> str:
    found: str = (await person.get(f"/api/tasks/{task['id']}")).json()["task"]["status"]
    return found


async def test_a_call_is_seen_edited_and_approved(
    runner: Runner, scripted: Scripted, person: Person, screen: Screen
) -> None:
    await screen.shows("Rota inbox: 0 waiting", "No reviews are waiting.")
    script = await scripted.script(calls(("desk__send", {"ref": "first"})), says("Sent."))
    task = await create(person, name="Answer Ada", agent="careful", input=f"Please. {script}")
    # It appears by itself.
    await screen.shows("Rota inbox: 1 waiting", "Answer Ada", "tool")
    screen.press("Enter")
    await screen.shows('"ref": "first"', "a approve")
    screen.press("e")
    await screen.shows("(before your edit)", "Your version:")
    await screen.shows('"ref": "second"', "Instead of:", '"ref": "first"')
    screen.press("a")
    await screen.shows("Approve exactly what is shown?")
    # Another key decides nothing.
    screen.press("x")
    await screen.shows("a approve", without="Approve exactly")
    assert await status(person, task) == "WAITING_APPROVAL"
    screen.press("a")
    await screen.shows("Approve exactly what is shown?")
    screen.press("y")
    await screen.shows("Rota inbox: 0 waiting", "Approved: Answer Ada")
    await until(lambda: status(person, task), lambda found: found == "COMPLETED")
    steps = (await person.get(f"/api/tasks/{task['id']}/timeline")).json()["steps"]
    assert [step["arguments"] for step in steps if step["kind"] == "tool"] == [{"ref": "second"}]
    screen.press("q")
    await screen.shows("Exit code: 0")


async def test_a_review_is_rejected_with_a_reason(person: Person, screen: Screen) -> None:
    first = await create(person, name="Send the quote", status="WAITING_APPROVAL")
    second = await create(person, name="Pay the\x1b[31m bill", status="WAITING_APPROVAL")
    seen = await screen.shows("Rota inbox: 2 waiting", "Send the quote", "Pay the⟨U+001B⟩[31m bill")
    assert seen.index("Send the quote") < seen.index("Pay the")
    screen.press("Down", "Enter")
    await screen.shows("Pay the⟨U+001B⟩[31m bill", "r reject")
    screen.press("r")
    await screen.shows("Reason:")
    screen.press("Too", "Space", "muxh", "BSpace", "BSpace", "ch", "Space", "ü")
    await screen.shows("Reason: Too much ü█")
    screen.press("Enter")
    await screen.shows("Rota inbox: 1 waiting", "Rejected: Pay the")
    assert await status(person, second) == "CANCELLED"
    review = (await person.get(f"/api/tasks/{second['id']}/review")).json()["review"]
    assert review["history"][-1]["reason"] == "Too much ü"
    assert await status(person, first) == "WAITING_APPROVAL"
    # Ctrl-C leaves the terminal as it was.
    screen.press("C-c")
    await screen.shows("Exit code: 0")


async def test_a_stale_review_is_not_approved_but_shown_again(
    person: Person, screen: Screen
) -> None:
    task = await create(
        person, name="Send it", description="To one person", status="WAITING_APPROVAL"
    )
    await screen.shows("Rota inbox: 1 waiting")
    screen.press("Enter")
    await screen.shows("To one person")
    # The screen is drawn again when the window changes. A small one says what it does not show.
    screen.tmux("resize-window", "-x", "80", "-y", "9")
    await screen.shows("more lines below)", "q back")
    screen.tmux("resize-window", "-x", "120", "-y", "40")
    await screen.shows("To one person", without="more lines below)")
    screen.press("a")
    await screen.shows("Approve exactly what is shown?")
    # The text changes while the person looks at it.
    await patch(person, task["id"], description="To everybody")
    screen.press("y")
    # It shows what waits now.
    await screen.shows("The review has changed. Nothing was decided.", "To everybody")
    assert await status(person, task) == "WAITING_APPROVAL"
    screen.press("a")
    await screen.shows("Approve exactly what is shown?")
    screen.press("y")
    await screen.shows("Rota inbox: 0 waiting", "Approved: Send it")
    assert await status(person, task) != "WAITING_APPROVAL"


async def test_a_review_that_somebody_else_decided_disappears(
    person: Person, screen: Screen
) -> None:
    task = await create(person, name="Send it", status="WAITING_APPROVAL")
    await screen.shows("Rota inbox: 1 waiting")
    screen.press("Enter")
    await screen.shows("r reject")
    screen.press("r")
    await screen.shows("Reason:")
    await patch(person, task["id"], status="CANCELLED")
    screen.press("Enter")
    await screen.shows("Rota inbox: 0 waiting")
    assert await status(person, task) == "CANCELLED"


async def test_without_a_terminal_the_inbox_says_what_to_use(
    runner: Runner, person: Person
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "rota.cli",
        "inbox",
        env=os.environ | {"ROTA_URL": url_of(runner.service), "ROTA_API_KEY": person.token},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == 2
    assert err.decode() == (
        "rota inbox needs a terminal. Scripts use: rota inbox --json, rota tasks approve\n"
    )
