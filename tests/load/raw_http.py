"""An HTTP client on raw sockets, because a client library takes as long as the service."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def label(self) -> str:
        """The status, and the code if the response is an error."""
        try:
            return f"{self.status} {self.json()['error']['code']}"
        except (ValueError, KeyError, TypeError):
            return str(self.status)


def request(method: str, path: str, token: str | None, body: Any = None, **headers: str) -> bytes:
    """The bytes of a request. Keys of headers have `_` in place of `-`."""
    content = (
        body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    )
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines if line)
    return int(first.split()[1]), headers


class RawClient:
    """Keeps connections open, and opens another one while all of them are in use."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._idle: list[Connection] = []

    async def connect(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def send(self, data: bytes) -> Response:
        if self._idle:
            connection = self._idle.pop()
            try:
                return await self._exchange(connection, data)
            except (OSError, asyncio.IncompleteReadError):
                # The service closes connections that were idle for long.
                connection[1].close()
        return await self._exchange(await self.connect(), data)

    async def _exchange(self, connection: Connection, data: bytes) -> Response:
        reader, writer = connection
        try:
            writer.write(data)
            status, headers = await read_head(reader)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        except asyncio.CancelledError:
            writer.close()
            raise
        if headers.get("connection") == "close":
            writer.close()
        else:
            self._idle.append(connection)
        return Response(status, body)
