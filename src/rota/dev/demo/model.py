"""The demonstration model: OpenAI's chat completions, answered by rules.

It reports tokens and can stream, as a real provider does. It waits a little before it answers, so
that people can watch.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rota.dev.demo.conversation import read
from rota.dev.demo.prices import MAX_OUTPUT_TOKENS, NAMES
from rota.dev.demo.rules import Turn, next_turn

CHARACTERS_PER_TOKEN = 4
# How long it takes to answer: at least this, and more for each token, up to a maximum.
MIN_S, TOKEN_S, MAX_S = 0.3, 0.004, 2.0


def routes(pace: float) -> list[Route]:
    """`pace` 0 answers at once, 1 as slowly as a model."""

    async def models(_: Request) -> Response:
        listed = [{"id": name, "object": "model", "owned_by": "rota"} for name in NAMES.values()]
        return JSONResponse({"object": "list", "data": listed})

    async def completions(request: Request) -> Response:
        try:
            body = await request.json()
            name, conversation = str(body["model"]), read(body)
        except (ValueError, KeyError, TypeError, AttributeError):
            return _error(400, "The body must be a chat completion request.")
        if name not in NAMES.values():
            return _error(
                404, f"The model {name!r} does not exist. Use {', '.join(NAMES.values())}."
            )
        turn = next_turn(conversation)
        answer = _Answer(name, body, turn)
        wait_s = pace * min(MAX_S, MIN_S + TOKEN_S * answer.output_tokens)
        if body.get("stream"):
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            events = answer.stream(wait_s, usage=usage)
            return StreamingResponse(events, media_type="text/event-stream")
        await asyncio.sleep(wait_s)
        return JSONResponse(answer.whole())

    return [
        Route("/v1/models", models),
        Route("/v1/chat/completions", completions, methods=["POST"]),
    ]


def _error(status: int, message: str) -> Response:
    code = "model_not_found" if status == 404 else None
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status)


class _Answer:
    def __init__(self, model: str, body: dict[str, Any], turn: Turn) -> None:
        given = json.dumps([body["messages"], body.get("tools") or []], ensure_ascii=False)
        # The same request gets the same IDs.
        seed = hashlib.sha256(given.encode()).hexdigest()
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or MAX_OUTPUT_TOKENS
        self.text = turn.text[: limit * CHARACTERS_PER_TOKEN]
        self.cut_off = self.text != turn.text
        self.calls = [
            {
                "id": f"call_{seed[:16]}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(turn.calls)
        ]
        self.input_tokens = _tokens(given)
        self.output_tokens = _tokens(self.text + "".join(json.dumps(call) for call in self.calls))
        self.head = {"id": f"chatcmpl-{seed[:24]}", "created": int(time.time()), "model": model}

    @property
    def finish_reason(self) -> str:
        return "length" if self.cut_off else "tool_calls" if self.calls else "stop"

    @property
    def usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        }

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = self.calls
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return {
            **self.head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self.usage,
        }

    async def stream(self, wait_s: float, *, usage: bool) -> AsyncIterator[str]:
        words = self.text.split(" ")
        parts = [word if n == 0 else f" {word}" for n, word in enumerate(words)]
        yield self._event({"role": "assistant", "content": ""})
        for part in parts:
            await asyncio.sleep(wait_s / len(parts))
            yield self._event({"content": part})
        for number, call in enumerate(self.calls):
            yield self._event({"tool_calls": [{"index": number, **call}]})
        yield self._event({}, self.finish_reason)
        if usage:
            yield self._line({"choices": [], "usage": self.usage})
        yield "data: [DONE]\n\n"

    def _event(self, delta: dict[str, Any], finish_reason: str | None = None) -> str:
        return self._line(
            {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
        )

    def _line(self, fields: dict[str, Any]) -> str:
        chunk = {**self.head, "object": "chat.completion.chunk", **fields}
        return f"data: {json.dumps(chunk)}\n\n"


def _tokens(text: str) -> int:
    return max(1, len(text) // CHARACTERS_PER_TOKEN)
