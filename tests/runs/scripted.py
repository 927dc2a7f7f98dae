"""The client of the scripted model and tool server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx

from tests.service import free_port

Turn = dict[str, Any]


def says(text: str, **more: Any) -> Turn:
    """A final answer."""
    return {"text": text, **more}


def calls(*tools: tuple[str, Any], **more: Any) -> Turn:
    """A turn that requests tool calls, given as (name, arguments)."""
    return {"toolCalls": [{"name": name, "arguments": given} for name, given in tools], **more}


def delegates(agent: str, script: str, name: str = "A part of it") -> tuple[str, dict[str, Any]]:
    """A tool call that gives a part of the work to another agent."""
    return "delegate", {"agent": agent, "name": name, "input": f"Help, please. {script}"}


class Scripted:
    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.AsyncClient(base_url=url, timeout=30)

    @classmethod
    @asynccontextmanager
    async def start(cls) -> AsyncIterator["Scripted"]:
        port = free_port()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.runs.model_server", "--port", str(port)
        )
        server = cls(f"http://127.0.0.1:{port}")
        try:
            async with asyncio.timeout(30):
                while not await server._ready():
                    await asyncio.sleep(0.05)
            yield server
        finally:
            await server.http.aclose()
            process.kill()
            await process.wait()

    async def _ready(self) -> bool:
        try:
            return (await self.http.get("/ready")).status_code == 200
        except httpx.TransportError:
            return False

    def models(self, **changes: Any) -> str:
        """ROTA_MODELS with this model at $1 and $2 per million tokens. `strong` costs twice."""
        choice = {
            "model": "scripted",
            "baseUrl": f"{self.url}/v1",
            "apiKey": "scripted-key",
            "inputUsdPerMillion": 1,
            "outputUsdPerMillion": 2,
            **changes,
        }
        strong = {"model": "scripted-strong", "inputUsdPerMillion": 2, "outputUsdPerMillion": 4}
        names = {"default": choice, "fast": choice, "strong": choice | strong}
        return json.dumps(names | self._chains(choice) | self._anthropic())

    def _chains(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Chains of three models with different prices. In `broken`, the second is unreachable."""
        chain = [
            choice | {"model": f"model-{place}", "outputUsdPerMillion": 10**place}
            for place in (1, 2, 3)
        ]
        unreachable = chain[1] | {"baseUrl": "http://127.0.0.1:1/v1"}
        return {"chain": chain, "broken": [chain[0], unreachable, chain[2]]}

    def _anthropic(self) -> dict[str, Any]:
        """A model of Anthropic's, at its price in the public table."""
        choice = {"provider": "anthropic", "model": "claude-sonnet-4-5", "baseUrl": self.url}
        return {"anthropic": choice | {"apiKey": "scripted-key"}}

    async def script(self, *turns: Turn, name: str | None = None) -> str:
        """Stores a script. Returns the text that selects it in a task's input."""
        name = name or f"s{uuid4().hex[:16]}"
        # httpx's own JSON encoder cannot encode unpaired surrogates.
        await self.http.post(f"/scripts/{name}", content=json.dumps(list(turns)))
        return f"script:{name}"

    async def release(self, script: str) -> None:
        """Lets the script answer its held turns."""
        await self.http.post(f"/release/{_name(script)}")

    async def asked(self, script: str) -> list[dict[str, Any]]:
        """Every call of a script, with its turn, messages and tools."""
        answer = await self.http.get(f"/scripts/{_name(script)}")
        found: list[dict[str, Any]] = answer.json()["calls"]
        return found

    async def count(self, script: str) -> dict[int, int]:
        """How often each turn was called."""
        counted: dict[int, int] = {}
        for call in await self.asked(script):
            counted[call["turn"]] = counted.get(call["turn"], 0) + 1
        return counted

    async def behave(self, ref: str, *behaviours: dict[str, Any]) -> None:
        await self.http.post(f"/behaviours/{ref}", json=list(behaviours))

    async def release_tool(self, ref: str) -> None:
        await self.http.post(f"/release-tool/{ref}")

    async def define(self, account_id: UUID, definitions: list[dict[str, Any]]) -> None:
        """Replaces the tool definitions of one account."""
        await self.http.post(f"/definitions/{account_id.hex}", json=definitions)

    async def done(self, ref: str) -> list[dict[str, Any]]:
        """The tool calls with this `ref` that acted, in order."""
        answer = await self.http.get("/tool-calls", params={"ref": ref})
        found: list[dict[str, Any]] = answer.json()
        return found


def _name(script: str) -> str:
    return script.removeprefix("script:")


def conversation(call: dict[str, Any]) -> str:
    """All messages of one model call, as one text."""
    return json.dumps(call["messages"], ensure_ascii=False)


def last_message(call: dict[str, Any]) -> str:
    """The last message of a conversation."""
    content = call["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
