"""What a scripted model says in one turn, and how its stream misbehaves.

The fields of a turn, or of one of its `failures`. All are optional.

  text, toolCalls: [{name, arguments (an object, or a raw string), id}], finishReason
  inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens
  usage: False to report none;  usageInEveryChunk: reports it with every chunk of OpenAI's stream
  delayS: answers after a delay;  hold: answers after POST /release/ID, and records whether the
    client disconnects before that
  status, error: an error with this status and body;  headers: extra response headers
  malformed: a 200 with this invalid body;  drop: disconnects during the answer
  failures: what the first calls of this turn return instead
  byModel: what a model of this name returns instead, by name

Only in a stream:

  pieceCharacters (20): the length of a chunk of text;  paceS: the pause between two chunks
  stamps: sends this many chunks, each with the time at which it is sent, instead of `text`
  spreadS: waits up to this long before the first chunk, so that many streams do not go in step
  holdAfter: waits for POST /release/ID after this many chunks of text
  breakAfter: closes the connection after this many chunks
  endAfter: ends the response properly after this many chunks, without the end of the answer
  errorAfter: sends `error` after this many chunks, as an event of the stream
"""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from starlette.responses import Response, StreamingResponse

Says = dict[str, Any]

# What changes the course of a stream.
_COURSE = ("paceS", "holdAfter", "breakAfter", "endAfter", "errorAfter")


def text_of(says: Says) -> Iterator[str]:
    """The chunks of the text."""
    if "stamps" in says:
        return (f"{time.time():.6f} " for _ in range(says["stamps"]))
    return iter(pieces(says.get("text") or "", says))


def pieces(text: str, says: Says) -> list[str]:
    length = says.get("pieceCharacters", 20)
    return [text[at : at + length] for at in range(0, len(text), length)]


def arguments_of(call: dict[str, Any]) -> str:
    given = call["arguments"]
    return given if isinstance(given, str) else json.dumps(given)


def call_id(call: dict[str, Any], turn: int, number: int) -> str:
    return str(call.get("id", f"call-{turn}-{number}"))


class Broken(Exception):
    """Closes the connection: uvicorn does so when an application fails during a response."""


def stream(
    says: Says,
    begin: Iterable[bytes],
    chunks: Iterable[bytes],
    end: Iterable[bytes],
    error: bytes,
    released: asyncio.Event,
) -> Response:
    """`chunks` are the pieces of text, one after the other."""
    kind = "text/event-stream; charset=utf-8"
    if not any(name in says for name in _COURSE):
        return Response(b"".join(itertools.chain(begin, chunks, end)), media_type=kind)

    async def course() -> AsyncIterator[bytes]:
        for each in begin:
            yield each
        sent = 0
        for sent, each in enumerate(itertools.chain(_first(b""), chunks)):
            yield each
            if sent == says.get("holdAfter"):
                await released.wait()
            if sent == 0 and "spreadS" in says:
                await asyncio.sleep(random.uniform(0, says["spreadS"]))
            if sent == says.get("breakAfter"):
                raise Broken
            if sent == says.get("endAfter"):
                return
            if sent == says.get("errorAfter"):
                yield error
                return
            if pace := says.get("paceS"):
                await asyncio.sleep(pace)
        for each in end:
            yield each

    return StreamingResponse(course(), media_type=kind)


def _first(empty: bytes) -> Iterator[bytes]:
    """So that the count of chunks begins at 0, before the first one."""
    yield empty
