"""Follows the tutorials in their order, on one `rota dev`, as a new user does."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from rota_sdk import Rota
from tests.docs import tutorials
from tests.e2e.test_readme import ROOT, base_port, rota_dev
from tools.reference.event_data import DATA, OPTIONAL

PAGES = ROOT / "docs" / "tutorials"
# The ports in the pages, and what is added to the base port of this test in their place.
PORTS = {"8080": 0, "8099": 15}


class Reader:
    """A person with a terminal, a browser and an empty folder."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        home = folder / "home"
        home.mkdir()
        sign_in = ROOT / "tests" / "docs" / "sign_in.py"
        self.environment = {
            "BROWSER": f"{sys.executable} {sign_in} %s",
            "COLUMNS": "200",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def follow(self, name: str) -> None:
        """Runs the blocks of a page, and compares what they print with what the page says."""
        text = (PAGES / f"{name}.md").read_text()
        for port, offset in PORTS.items():
            text = text.replace(port, str(self.port + offset))
        text = text.replace("rota dev --detach", f"rota dev --detach --port {self.port}")
        tutorial = tutorials.read(text)
        printed = tutorials.run(tutorial, self.folder, self.environment)
        for block, output in zip(tutorial.blocks, printed, strict=True):
            for expected in block.prints:
                assert tutorials.is_printed(expected, output), (
                    f"{name}: the page says\n{expected}\nbut this was printed:\n{output}"
                )


@pytest.fixture(scope="module")
async def reader(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reader]:
    folder = tmp_path_factory.mktemp("reader")
    try:
        yield Reader(folder, base_port())
    finally:
        await rota_dev("--stop", "--data", str(folder / ".rota"))


def test_the_first_task_agent_and_tool_server_work_as_the_tutorials_say(reader: Reader) -> None:
    for name in ("first-task", "first-agent", "first-tool-server"):
        reader.follow(name)
    check_events(reader.port)


def check_events(port: int) -> None:
    """The events that the tutorials caused have the fields that the reference lists."""
    token = httpx.post(f"http://127.0.0.1:{port + 6}/dev/token", json={"sub": "ada"}).json()
    base = f"http://127.0.0.1:{port}"
    session = httpx.post(f"{base}/api/auth/session", json={"idToken": token["idToken"]}).json()
    with Rota(base_url=base, api_key=session["token"]) as client:
        events = list(client.events.list(after=0))
    assert len({event.type for event in events}) > 10
    for event in events:
        listed = DATA[event.type].fields
        always = {name for name in listed if not name.endswith(OPTIONAL)}
        known = {name.removesuffix(OPTIONAL) for name in listed}
        assert always <= set(event.data) <= known, (event.type, event.data)


def test_the_settings_of_the_production_tutorial_are_valid(tmp_path: Path) -> None:
    Reader(tmp_path, 0).follow("production")
