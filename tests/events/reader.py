"""A reader of server-sent events on a plain socket. It can disconnect at any byte."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Message:
    id: int
    type: str
    data: dict[str, Any]


class Reader:
    """One connection to a stream. `messages` has every message that arrived completely."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._raw = b""
        self._text = b""
        self.status = 0
        # Bytes of the response body so far.
        self.taken = 0
        self.messages: list[Message] = []
        # All messages in order, with the live texts of a task, which have no number.
        self.received: list[Message | tuple[str, dict[str, Any]]] = []
        self.comments: list[str] = []

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        port: int,
        token: str,
        path: str,
        after: int | None = None,
        *,
        buffer: int | None = None,
        account: str = "personal",
    ) -> AsyncIterator["Reader"]:
        sock = socket.socket()
        if buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        # A small buffer, however fast the stream is.
        reader, writer = await asyncio.open_connection(sock=sock, limit=2048)
        resume = f"Last-Event-ID: {after}\r\n" if after is not None else ""
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: rota\r\nAuthorization: Bearer {token}\r\n"
            f"X-Service-Account: {account}\r\n{resume}\r\n".encode()
        )
        try:
            yield cls(reader, writer)
        finally:
            # A reset instead of a clean close, as when a network fails.
            writer.transport.abort()

    async def head(self) -> None:
        head = await self._reader.readuntil(b"\r\n\r\n")
        self.status = int(head.split(b" ")[1])

    async def read(self, at_most: int = 65536) -> bool:
        """Reads what is available, or waits for more. False when the stream has ended."""
        if not self.status:
            await self.head()
        piece = await self._reader.read(at_most)
        self.taken += len(piece)
        self._raw += piece
        ended = self._unchunk()
        *whole, self._text = self._text.split(b"\n\n")
        for block in whole:
            self._take(block.decode())
        return bool(piece) and not ended

    async def until(self, last: int) -> None:
        while not self.messages or self.messages[-1].id < last:
            assert await self.read(), f"the stream ended before number {last}"

    async def to_end(self) -> None:
        while await self.read():
            pass

    def _unchunk(self) -> bool:
        while b"\r\n" in self._raw:
            size_line, _, rest = self._raw.partition(b"\r\n")
            size = int(size_line, 16)
            if size == 0:
                return True
            if len(rest) < size + 2:
                break
            self._text += rest[:size]
            self._raw = rest[size + 2 :]
        return False

    def _take(self, block: str) -> None:
        if block.startswith(":"):
            self.comments.append(block[2:])
            return
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        data = json.loads(fields["data"])
        if "id" not in fields:
            self.received.append((fields["event"], data))
            return
        assert data["sequence"] == int(fields["id"])
        assert data["type"] == fields["event"]
        self.messages.append(Message(int(fields["id"]), fields["event"], data))
        self.received.append(self.messages[-1])
