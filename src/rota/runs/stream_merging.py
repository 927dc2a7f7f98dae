"""Joins the small pieces of an answer that a provider streams.

Providers send a piece for each token or two, and the client libraries take 0.1 ms of processor time
for every piece, which is most of what a worker does. So what arrives within a moment is joined
before they read it. Only pieces that differ in nothing but their text are joined; everything else
is passed on as it is, in its order.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

# Between two batches of pieces. Watchers of a live text see it that much later. The first piece and
# the end of an answer are passed on at once.
PAUSE_S = 0.03
# Of an answer that arrives faster than it is read.
MAX_BUFFERED_BYTES = 128 * 1024
# Longer events are passed on as they arrive.
MAX_EVENT_BYTES = 64 * 1024

_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")
_EVENT = re.compile(rb"((?:event:[^\r\n]*\r?\n)?data:)([^\r\n]*)(\r?\n\r?\n)")
# Where chat completions have a text, and the blocks of Anthropic.
_TEXTS = frozenset({"content", "reasoning_content", "reasoning"})
_BLOCK_TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


async def merge_pieces(response: httpx2.Response) -> None:
    """A hook of an HTTP client."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "text/event-stream" and "content-encoding" not in response.headers:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = MergedStream(response.stream)


class MergedStream(httpx2.AsyncByteStream):
    """Reads a stream of events in a task of its own, and passes on what has arrived meanwhile."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._merger = Merger()
        self._parts: list[bytes] = []
        self._size = 0
        self._has_parts = asyncio.Event()
        self._has_room = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # The libraries read what is left of a stream in a second loop.
        reading = self._reading = self._reading or asyncio.create_task(self._read())
        pause_s = 0.0
        while not reading.done():
            await self._has_parts.wait()
            if pause_s:
                await asyncio.wait({reading}, timeout=pause_s)
            if merged := self._merger.merge(self._take()):
                yield merged
                pause_s = PAUSE_S
        if rest := self._merger.merge(self._take()) + self._merger.rest():
            yield rest
        if reading.cancelled():
            # Somebody else has closed it. Whoever reads it is not cancelled.
            raise httpx2.StreamClosed
        # Raises what has ended the stream.
        await reading

    async def _read(self) -> None:
        try:
            async for part in self._stream:
                self._parts.append(part)
                self._size += len(part)
                self._has_parts.set()
                if self._size > MAX_BUFFERED_BYTES:
                    self._has_room.clear()
                    await self._has_room.wait()
        finally:
            self._has_parts.set()

    def _take(self) -> bytes:
        parts = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._has_parts.clear()
        self._has_room.set()
        return parts

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
            # Also if it was cancelled before it began.
            self._has_parts.set()
            if not self._reading.cancelled():
                # Marks the error as seen. Whoever closes a stream does not want to know it.
                self._reading.exception()
        await self._stream.aclose()


class Merger:
    """Joins the events of one stream."""

    def __init__(self) -> None:
        # The beginning of an event that has not arrived completely.
        self._begun = b""

    def merge(self, data: bytes) -> bytes:
        """The events that are complete, with as few of them as possible."""
        *events, self._begun = _split(self._begun + data)
        if len(self._begun) > MAX_EVENT_BYTES:
            events.append(self._begun)
            self._begun = b""
        if len(events) < 2:
            return b"".join(events)
        merged: list[bytes] = []
        joined: _Piece | None = None
        for event in events:
            piece = _Piece.of(event)
            if joined is not None:
                if piece is not None and joined.goes_on_with(piece):
                    joined = piece.after(joined)
                    continue
                merged.append(joined.event())
            if piece is None:
                merged.append(event)
            joined = piece
        if joined is not None:
            merged.append(joined.event())
        return b"".join(merged)

    def rest(self) -> bytes:
        rest, self._begun = self._begun, b""
        return rest


def _split(data: bytes) -> list[bytes]:
    """The events with their ends, and then the beginning of the next one."""
    events, start = [], 0
    for end in _END_OF_EVENT.finditer(data):
        events.append(data[start : end.end()])
        start = end.end()
    return [*events, data[start:]]


@dataclass(slots=True)
class _Piece:
    """An event that carries a piece of a text, of thoughts or of the arguments of a tool call."""

    raw: bytes
    # What surrounds its JSON.
    begin: bytes
    end: bytes
    data: dict[str, Any]
    # Where the text is. Without it, two pieces of the same text have the same shape.
    holder: dict[str, Any]
    key: str
    shape: Any
    texts: list[str]

    @classmethod
    def of(cls, event: bytes) -> "_Piece | None":
        found = _EVENT.fullmatch(event)
        if found is None:
            return None
        begin, raw, end = found.groups()
        try:
            data = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return None
        place = _place_of_text(data)
        if place is None:
            return None
        holder, key, shape = place
        text = holder[key]
        holder[key] = None
        return cls(event, begin, end, data, holder, key, shape, [text])

    def goes_on_with(self, other: "_Piece") -> bool:
        return (
            (self.begin, self.end, self.key) == (other.begin, other.end, other.key)
            and self.shape == other.shape
            # The later one says all that the earlier one says, such as the usage so far.
            and all(other.data.get(name) for name, value in self.data.items() if value)
            and _can_be_joined(self)
            and _can_be_joined(other)
        )

    def after(self, earlier: "_Piece") -> "_Piece":
        earlier.texts += self.texts
        self.texts = earlier.texts
        return self

    def event(self) -> bytes:
        if len(self.texts) == 1:
            return self.raw
        self.holder[self.key] = "".join(self.texts)
        return self.begin + orjson.dumps(self.data) + self.end


def _can_be_joined(piece: _Piece) -> bool:
    """The library recognizes `<think>`, and white space before a text, as pieces of their own."""
    if piece.key != "content":
        return True
    text = piece.texts[-1]
    return not (text.isspace() and len(piece.texts) == 1) and "<" not in text and ">" not in text


def _place_of_text(data: Any) -> tuple[dict[str, Any], str, Any] | None:
    """Where the only text of an event is, and what must be the same in the next one.

    None if the event says anything else.
    """
    if not isinstance(data, dict):
        return None
    if data.get("type") == "content_block_delta":
        return _in_block(data)
    match data.get("choices"):
        case [{"delta": dict(delta), "finish_reason": None} as choice] if not choice.get(
            "logprobs"
        ):
            found = None
            for name, value in delta.items():
                if not value or name == "role":
                    continue
                if found is not None:
                    return None
                if name in _TEXTS and isinstance(value, str):
                    found = delta, name
                elif name != "tool_calls" or (found := _in_tool_call(value)) is None:
                    return None
            return (*found, data["choices"]) if found else None
    return None


def _in_tool_call(calls: Any) -> tuple[dict[str, Any], str] | None:
    """The first piece of a call has its name and its ID, and is passed on as it is."""
    match calls:
        case [{"function": dict(function)} as call] if "index" in call and not call.get("id"):
            if isinstance(function.get("arguments"), str) and not function.get("name"):
                return function, "arguments"
    return None


def _in_block(data: dict[str, Any]) -> tuple[dict[str, Any], str, Any] | None:
    match data.get("delta"):
        case dict(delta) if len(delta) == 2:
            key = _BLOCK_TEXTS.get(delta.get("type", ""))
            if key is not None and isinstance(delta.get(key), str):
                return delta, key, data
    return None
