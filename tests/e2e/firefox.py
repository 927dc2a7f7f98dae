"""A real Firefox, driven over WebDriver BiDi, which it speaks itself.

Playwright's Firefox is a build of its own. This drives the one that people have.
"""

import asyncio
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.e2e.browser import READ, REPORT_VIOLATIONS
from tests.runs.runner import until

START_S = 60
# Firefox never answers a call to a page that has gone meanwhile.
ANSWER_S = 30
CONTROL = "\ue009"
# The text of a thing that is visible: of a field, its label.
TEXT = "(it) => it.checkVisibility() && (it.labels?.[0] ?? it).textContent"
# Whether a click would reach it: it is enabled, has stopped moving and is not covered.
READY = """
async (it) => {
  it.scrollIntoView({ block: 'center' });
  const place = () => JSON.stringify(it.getBoundingClientRect());
  const before = place();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { x, y, width, height } = it.getBoundingClientRect();
  const top = document.elementFromPoint(x + width / 2, y + height / 2);
  return !it.disabled && before === place() && it.contains(top);
}
"""


class RefusedError(Exception):
    """Firefox could not do it."""


def program() -> str | None:
    return shutil.which("firefox") or shutil.which("firefox-esr")


@dataclass
class Firefox:
    """One tab. `errors` has the errors in its console and its violations of the security policy."""

    socket: ClientConnection
    tab: str = ""
    errors: list[str] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _answers: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def start(cls, profile: Path) -> AsyncIterator["Firefox"]:
        path = program()
        assert path
        options = ["--headless", "--no-remote", "--remote-debugging-port", "0"]
        process = await asyncio.create_subprocess_exec(
            path,
            *options,
            "--profile",
            str(profile),
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            assert process.stderr
            address = await asyncio.wait_for(_listening(process.stderr), START_S)
            async with connect(f"{address}/session", max_size=None) as socket:
                browser = cls(socket)
                reading = (_read_to_end(process.stderr), browser._listen())
                tasks = [asyncio.create_task(each) for each in reading]
                try:
                    await browser._prepare()
                    yield browser
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()

    async def _prepare(self) -> None:
        await self.call("session.new", capabilities={})
        await self.call("session.subscribe", events=["log.entryAdded"])
        report = f"() => {{ {REPORT_VIOLATIONS} }}"
        await self.call("script.addPreloadScript", functionDeclaration=report)
        self.tab = (await self.call("browsingContext.getTree"))["contexts"][0]["context"]
        size = {"width": 1280, "height": 860}
        await self.call("browsingContext.setViewport", context=self.tab, viewport=size)

    async def _listen(self) -> None:
        async for text in self.socket:
            message = json.loads(text)
            if message.get("id") in self._answers:
                self._answers.pop(message["id"]).set_result(message)
            elif message.get("method") == "log.entryAdded":
                entry = message["params"]
                if entry["level"] == "error":
                    self.errors.append(str(entry["text"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        try:
            message = await asyncio.wait_for(answer, ANSWER_S)
        except TimeoutError:
            self._answers.pop(number, None)
            raise RefusedError(f"{method}: no answer within {ANSWER_S} s") from None
        if message["type"] != "success":
            raise RefusedError(f"{method}: {message}")
        result: dict[str, Any] = message["result"]
        return result

    async def open(self, address: str) -> None:
        await self.call("browsingContext.navigate", context=self.tab, url=address, wait="complete")

    async def see(self, role: str, name: str | re.Pattern[str]) -> dict[str, Any]:
        """The first visible thing of this role. The name is its whole accessible name, or a
        pattern in its text or label."""

        value = {"role": role} | ({"name": name} if isinstance(name, str) else {})
        locator = {"type": "accessibility", "value": value}
        pattern = "" if isinstance(name, str) else name

        async def look() -> dict[str, Any] | None:
            try:
                found = await self.call(
                    "browsingContext.locateNodes", context=self.tab, locator=locator
                )
                for node in found["nodes"]:
                    text = await self.run(TEXT, node)
                    if isinstance(text, str) and re.search(pattern, text):
                        return {"sharedId": node["sharedId"]}
            except RefusedError:
                # Another page came meanwhile.
                pass
            return None

        try:
            found = await until(look)
        except AssertionError:
            shown = await self.run("() => `${location.href}: ${document.body.innerText}`")
            raise AssertionError(f"There is no {role} {name!r} on {shown}; {self.errors}") from None
        assert found
        return found

    async def read(self) -> None:
        """Scrolls through what is decided, as a person who reads it."""
        await self.run(f"() => ({READ})(document.querySelector('.subject'))")

    async def run(self, function: str, *nodes: dict[str, Any]) -> Any:
        answer = await self.call(
            "script.callFunction",
            functionDeclaration=function,
            arguments=[{"sharedId": node["sharedId"]} for node in nodes],
            target={"context": self.tab},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer
        return answer["result"].get("value")

    async def click(self, role: str, name: str | re.Pattern[str]) -> None:
        node = await self.see(role, name)
        await until(lambda: self.run(READY, node))
        origin = {"type": "element", "element": node}
        press = [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        await self._act({"type": "pointer", "id": "mouse", "actions": press})

    async def write(self, name: str | re.Pattern[str], text: str) -> None:
        """Replaces the text of a field, key by key."""
        await self.click("textbox", name)
        everything = [("keyDown", CONTROL), ("keyDown", "a"), ("keyUp", "a"), ("keyUp", CONTROL)]
        keys = [(kind, key) for key in text for kind in ("keyDown", "keyUp")]
        actions = [{"type": kind, "value": key} for kind, key in everything + keys]
        await self._act({"type": "key", "id": "keyboard", "actions": actions})

    async def _act(self, source: dict[str, Any]) -> None:
        await self.call("input.performActions", context=self.tab, actions=[source])


async def _listening(output: asyncio.StreamReader) -> str:
    async for line in output:
        if found := re.search(r"BiDi listening on (ws://\S+)", line.decode()):
            return found[1]
    raise AssertionError("Firefox ended before it listened.")


async def _read_to_end(output: asyncio.StreamReader) -> None:
    """So that Firefox never waits for somebody who reads its output."""
    async for _ in output:
        pass
