"""A scripted model and a counting tool server, over real HTTP, in their own process.

    python -m tests.runs.model_server --port 18100

The model implements OpenAI's chat completions and Anthropic's messages. If the first user
message contains `script:ID`, the script stored at `/scripts/ID` answers. Otherwise the model
answers `Done.` at once. The turn of the script depends only on the number of assistant turns in
the conversation, so a repeated call gets the same answer. Every call is counted.
tests/peers/models/turn.py describes a turn. tests/runs/scripted.py is the client. If the message
contains `reader:ID`, tests/runs/reading_model.py answers.
"""

import argparse
import asyncio
import json
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.peers.models import anthropic_wire, openai_wire
from tests.runs.reading_model import READER, Reader

INSTANT: dict[str, Any] = {"text": "Done.", "inputTokens": 10, "outputTokens": 5}
SCRIPT = re.compile(r"script:([\w-]+)")


@dataclass
class Script:
    turns: list[dict[str, Any]]
    calls: list[dict[str, Any]] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class Scripts:
    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.instant = Script([INSTANT])
        self.readers: dict[str, tuple[Reader, Script]] = {}

    async def put_reader(self, request: Request) -> Response:
        self.readers[request.path_params["id"]] = Reader(**await request.json()), Script([])
        return JSONResponse({})

    async def read_reader(self, request: Request) -> Response:
        reader, _ = self.readers[request.path_params["id"]]
        return JSONResponse({"calls": reader.calls})

    async def release_reader(self, request: Request) -> Response:
        self.readers[request.path_params["id"]][1].released.set()
        return JSONResponse({})

    async def put(self, request: Request) -> Response:
        self.scripts[request.path_params["id"]] = Script(await request.json())
        return JSONResponse({})

    async def read(self, request: Request) -> Response:
        script = self._script(request.path_params["id"])
        return JSONResponse({"calls": script.calls if script else []})

    async def release(self, request: Request) -> Response:
        script = self._script(request.path_params["id"])
        if script:
            script.released.set()
        return JSONResponse({})

    async def calls(self, _: Request) -> Response:
        """How often each turn of each script was called."""
        counted: dict[str, dict[int, int]] = {}
        for name, script in {**self.scripts, "instant": self.instant}.items():
            turns: dict[int, int] = defaultdict(int)
            for call in script.calls:
                turns[call["turn"]] += 1
            counted[name] = turns
        return JSONResponse(counted)

    async def completions(self, request: Request) -> Response:
        return await self._answer(request, openai_wire)

    async def messages(self, request: Request) -> Response:
        return await self._answer(request, anthropic_wire)

    async def _answer(self, request: Request, wire: ModuleType) -> Response:
        body = await request.json()
        messages = body["messages"]
        first = next((_text(m) for m in messages if m["role"] == "user"), "")
        if reads := READER.search(first):
            reader, script = self.readers[reads.group(1)]
            says = reader.says(body)
            if says.get("hold"):
                await script.released.wait()
            if says.get("status", 200) != 200:
                return wire.error(says)  # type: ignore[no-any-return]
            return wire.answer(says, body, 0, script.released)  # type: ignore[no-any-return]
        found = SCRIPT.search(first)
        script = (self.scripts.get(found.group(1)) if found else None) or self.instant
        turn = sum(message["role"] == "assistant" for message in messages)
        says = script.turns[min(turn, len(script.turns) - 1)]
        if failures := says.get("failures"):
            earlier = sum(call["turn"] == turn for call in script.calls)
            says = failures[earlier] if earlier < len(failures) else says
        says = says.get("byModel", {}).get(body["model"], says)
        call = {
            "turn": turn,
            "model": body["model"],
            "at": time.time(),
            # The conversations of a very long run would need too much memory.
            "system": body.get("system"),
            "messages": messages if len(messages) < 100 and script is not self.instant else [],
            "tools": [tool.get("function", tool) for tool in body.get("tools", [])],
            # OpenAI's name, and Anthropic's.
            "responseFormat": body.get("response_format") or body.get("output_config"),
            "maxTokens": body.get("max_completion_tokens") or body.get("max_tokens"),
            "headers": dict(request.headers),
            "answered": False,
            "hungUp": False,
        }
        script.calls.append(call)
        if says.get("hold"):
            while not script.released.is_set():
                if await request.is_disconnected():
                    call["hungUp"] = True
                    return Response()
                await asyncio.sleep(0.02)
        if says.get("delayS"):
            await asyncio.sleep(says["delayS"])
        call |= {"answered": True, "until": time.time()}
        if says.get("drop"):
            return disconnect()
        if says.get("malformed") and not body.get("stream"):
            return Response(says["malformed"], media_type="application/json")
        answered: Response
        if says.get("status", 200) != 200:
            answered = wire.error(says)
        else:
            answered = wire.answer(says, body, turn, script.released)
        return answered

    def _script(self, name: str) -> Script | None:
        return self.instant if name == "instant" else self.scripts.get(name)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)


def disconnect() -> Response:
    """Starts an answer and never ends it, so uvicorn closes the connection."""
    return Response(b"{", headers={"Content-Length": "1000"}, media_type="application/json")


class Tools:
    """Tools that record their calls and fail on request.

    The `ref` in a call's arguments selects its behaviour: the entries stored at
    `/behaviours/REF` apply to its calls in order; later calls succeed.
      delayS; hold: until POST /release-tool/REF; status; drop: disconnects after acting;
      unavailable: answers 503 before acting; result; isError
    """

    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []
        self.behaviours: dict[str, list[dict[str, Any]]] = {}
        # The behaviour of calls that have no entry in `behaviours` left.
        self.always: dict[str, dict[str, Any]] = {}
        self.released: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.definitions: dict[str, list[dict[str, Any]]] = {}

    async def behave(self, request: Request) -> Response:
        self.behaviours[request.path_params["ref"]] = await request.json()
        return JSONResponse({})

    async def behave_always(self, request: Request) -> Response:
        self.always[request.path_params["ref"]] = await request.json()
        return JSONResponse({})

    async def release(self, request: Request) -> Response:
        self.released[request.path_params["ref"]].set()
        return JSONResponse({})

    async def define(self, request: Request) -> Response:
        """Replaces the tool definitions of one account."""
        self.definitions[request.path_params["account"]] = await request.json()
        return JSONResponse({})

    async def list(self, request: Request) -> Response:
        account = request.path_params["account"]
        return JSONResponse(self.definitions.get(account, DEFINITIONS))

    async def calls(self, request: Request) -> Response:
        """The calls that acted, in order."""
        ref = request.query_params.get("ref")
        return JSONResponse(
            [call for call in self.log if ref is None or call["arguments"].get("ref") == ref]
        )

    async def call(self, request: Request) -> Response:
        body = await request.json()
        ref = body["arguments"].get("ref", "")
        waiting = self.behaviours.get(ref)
        says = waiting.pop(0) if waiting else self.always.get(ref, {})
        if says.get("unavailable"):
            return JSONResponse({"error": "not now"}, 503)
        name = request.path_params["name"]
        entry = {
            "order": len(self.log),
            "tool": name,
            "arguments": body["arguments"],
            "key": body["key"],
            "at": time.time(),
        }
        self.log.append(entry)
        if says.get("hold"):
            await self.released[ref].wait()
        if says.get("delayS"):
            await asyncio.sleep(says["delayS"])
        if says.get("drop"):
            return disconnect()
        if says.get("status", 200) != 200:
            return JSONResponse({"error": "scripted"}, says["status"])
        default = f"{name} did {json.dumps(body['arguments'], sort_keys=True)}"
        return JSONResponse(
            {"content": says.get("result", default), "isError": says.get("isError", False)}
        )


def _definition(name: str, description: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "name": name,
        "server": "desk",
        "description": description,
        "readOnly": read_only,
        "argumentsSchema": {
            "type": "object",
            "properties": {"ref": {"type": "string"}, "text": {"type": "string", "maxLength": 100}},
            "required": ["ref"],
            "additionalProperties": False,
        },
    }


DEFINITIONS = [
    _definition("lookup", "Looks something up.", read_only=True),
    _definition("send", "Sends something.", read_only=False),
]


def build_app() -> Starlette:
    scripts, tools = Scripts(), Tools()

    async def ready(_: Request) -> Response:
        return JSONResponse({})

    return Starlette(
        routes=[
            Route("/ready", ready),
            Route("/v1/chat/completions", scripts.completions, methods=["POST"]),
            Route("/v1/messages", scripts.messages, methods=["POST"]),
            Route("/scripts/{id}", scripts.put, methods=["POST"]),
            Route("/scripts/{id}", scripts.read, methods=["GET"]),
            Route("/release/{id}", scripts.release, methods=["POST"]),
            Route("/readers/{id}", scripts.put_reader, methods=["POST"]),
            Route("/readers/{id}", scripts.read_reader, methods=["GET"]),
            Route("/release-reader/{id}", scripts.release_reader, methods=["POST"]),
            Route("/calls", scripts.calls, methods=["GET"]),
            Route("/behaviours/{ref}", tools.behave, methods=["POST"]),
            Route("/always/{ref}", tools.behave_always, methods=["POST"]),
            Route("/release-tool/{ref}", tools.release, methods=["POST"]),
            Route("/definitions/{account}", tools.define, methods=["POST"]),
            Route("/definitions/{account}", tools.list, methods=["GET"]),
            Route("/tools/{name}", tools.call, methods=["POST"]),
            Route("/tool-calls", tools.calls, methods=["GET"]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    uvicorn.run(
        build_app(),
        host="127.0.0.1",
        port=port,
        log_level="critical",
        access_log=False,
        timeout_keep_alive=75,
    )


if __name__ == "__main__":
    main()
