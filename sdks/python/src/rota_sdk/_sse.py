"""Reads server-sent events from bytes that arrive in pieces of any size."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    event: str
    data: str
    id: str | None


class Decoder:
    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, piece: bytes) -> Iterator[Message]:
        """The messages that this piece completes."""
        # Only these characters end a line. `str.splitlines` would also split at characters that
        # texts may contain, such as U+2028.
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line:
                self._take(line.decode(errors="replace"))
            else:
                event, data, number = self._event, self._data, self._id
                self._event, self._data, self._id = "", [], None
                if data:
                    yield Message(event or "message", "\n".join(data), number)

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
