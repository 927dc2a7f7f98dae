"""OpenAI's chat completions: whole answers, streams and errors."""

import asyncio
import json
import time
from typing import Any

from starlette.responses import JSONResponse, Response

from tests.peers.models.turn import Says, arguments_of, call_id, pieces, stream, text_of

ERROR = {"message": "Scripted.", "type": "scripted"}


def error(says: Says) -> Response:
    found = says.get("error", ERROR)
    return JSONResponse({"error": found}, says["status"], says.get("headers"))


def answer(says: Says, body: dict[str, Any], turn: int, released: asyncio.Event) -> Response:
    if not body.get("stream"):
        return Response(
            json.dumps(_whole(says, body["model"], turn)), media_type="application/json"
        )
    with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    head = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }
    # While usage is asked for, every chunk has the field.
    unknown: dict[str, Any] = {"usage": None} if with_usage else {}
    if says.get("usageInEveryChunk"):
        # As some compatible services do.
        unknown = {"usage": _usage(says)}

    def line(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _data({**head, "choices": [choice], **unknown})

    begin = [line({"role": "assistant", "content": "", "refusal": None})]
    if says.get("malformed"):
        return Response(f"data: {says['malformed']}\n\n", media_type="text/event-stream")
    end = []
    for number, call in enumerate(says.get("toolCalls", [])):
        function = {"name": call["name"], "arguments": ""}
        first = {"index": number, "id": call_id(call, turn, number), "type": "function"}
        end.append(line({"tool_calls": [{**first, "function": function}]}))
        end += [
            line({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
            for piece in pieces(arguments_of(call), says)
        ]
    end.append(line({}, _finish_reason(says)))
    if with_usage and says.get("usage", True):
        end.append(_data({**head, "choices": [], "usage": _usage(says)}))
    end.append(b"data: [DONE]\n\n")
    return stream(
        says,
        begin,
        (line({"content": piece}) for piece in text_of(says)),
        end,
        _data({"error": says.get("error", ERROR)}),
        released,
    )


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _finish_reason(says: Says) -> str:
    return str(says.get("finishReason", "tool_calls" if says.get("toolCalls") else "stop"))


def _usage(says: Says) -> dict[str, Any]:
    given, used = says.get("inputTokens", 10), says.get("outputTokens", 5)
    return {
        "prompt_tokens": given,
        "completion_tokens": used,
        "total_tokens": given + used,
        "prompt_tokens_details": {"cached_tokens": says.get("cachedTokens", 0)},
        "completion_tokens_details": {"reasoning_tokens": says.get("reasoningTokens", 0)},
    }


def _whole(says: Says, model: str, turn: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": says.get("text")}
    if calls := says.get("toolCalls"):
        message["tool_calls"] = [
            {
                "id": call_id(call, turn, number),
                "type": "function",
                "function": {"name": call["name"], "arguments": arguments_of(call)},
            }
            for number, call in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(says)}
    found: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
    }
    if says.get("usage", True):
        found["usage"] = _usage(says)
    return found
