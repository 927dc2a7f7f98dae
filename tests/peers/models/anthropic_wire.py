"""Anthropic's messages: whole answers, streams and errors."""

import asyncio
import json
from typing import Any

from starlette.responses import JSONResponse, Response

from tests.peers.models.turn import Says, arguments_of, call_id, pieces, stream

ERROR = {"type": "overloaded_error", "message": "Overloaded"}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


def error(says: Says) -> Response:
    kind = _ERROR_TYPES.get(says["status"], "api_error")
    found = says.get("error", {"type": kind, "message": "Scripted."})
    body = {"type": "error", "error": found, "request_id": "req_scripted"}
    return JSONResponse(body, says["status"], says.get("headers"))


def answer(says: Says, body: dict[str, Any], turn: int, released: asyncio.Event) -> Response:
    message = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    if not body.get("stream"):
        content: list[dict[str, Any]] = []
        if text := says.get("text"):
            content.append({"type": "text", "text": text})
        for number, call in enumerate(says.get("toolCalls", [])):
            given = json.loads(arguments_of(call))
            content.append({**_tool(call, turn, number), "input": given})
        whole = {"content": content, "stop_reason": _stop_reason(says), "usage": _usage(says)}
        return JSONResponse({**message, **whole})
    # The count of the output is not known yet.
    usage = {**_usage(says), "output_tokens": 1}
    begin = [_event("message_start", message={**message, "usage": usage})]
    if says.get("malformed"):
        return Response(
            f"event: message_start\ndata: {says['malformed']}\n\n", media_type="text/event-stream"
        )
    text = says.get("text") or ""
    blocks = 0
    end = []
    if text:
        begin += [
            _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            _event("ping"),
        ]
        end.append(_event("content_block_stop", index=0))
        blocks = 1
    for number, call in enumerate(says.get("toolCalls", [])):
        index = blocks + number
        block = {**_tool(call, turn, number), "input": {}}
        end.append(_event("content_block_start", index=index, content_block=block))
        for piece in ["", *pieces(arguments_of(call), says)]:
            delta = {"type": "input_json_delta", "partial_json": piece}
            end.append(_event("content_block_delta", index=index, delta=delta))
        end.append(_event("content_block_stop", index=index))
    stop = {"stop_reason": _stop_reason(says), "stop_sequence": None}
    end += [_event("message_delta", delta=stop, usage=_usage(says)), _event("message_stop")]
    return stream(
        says,
        begin,
        (
            _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
            for piece in pieces(text, says)
        ),
        end,
        _event("error", error=says.get("error", ERROR)),
        released,
    )


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _tool(call: dict[str, Any], turn: int, number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id(call, turn, number), "name": call["name"]}


def _stop_reason(says: Says) -> str:
    if "finishReason" in says:
        return _STOP_REASONS[says["finishReason"]]
    return "tool_use" if says.get("toolCalls") else "end_turn"


def _usage(says: Says) -> dict[str, int]:
    """Anthropic counts cached input apart from other input."""
    cached, written = says.get("cachedTokens", 0), says.get("cacheWriteTokens", 0)
    return {
        "input_tokens": says.get("inputTokens", 10) - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": says.get("outputTokens", 5),
    }
