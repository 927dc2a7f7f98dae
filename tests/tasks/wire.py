"""A minimal keep-alive HTTP connection, so that a test can send thousands of requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HttpResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> HttpResponse:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        data = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {path} HTTP/1.1", "Host: rota", f"Authorization: Bearer {self._token}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if data:
            lines.append("Content-Type: application/json")
        lines.append(f"Content-Length: {len(data)}")
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in head[1:] if line)
        received = {name.lower(): value for name, _, value in pairs}
        content = await self._reader.readexactly(int(received["content-length"]))
        return HttpResponse(int(head[0].split(" ")[1]), received, content)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


@asynccontextmanager
async def wires(port: int, tokens: Sequence[str], count: int) -> AsyncIterator[list[Wire]]:
    """Connections of several clients. They use the tokens in turn."""
    made = [Wire(port, tokens[number % len(tokens)]) for number in range(count)]
    try:
        yield made
    finally:
        for wire in made:
            wire.close()
