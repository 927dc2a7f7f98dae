"""Hostile tool servers: raw sockets that send invalid, oversized or endless responses."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Behaviour = Callable[[dict[str, Any], Writer], Awaitable[None]]

CHUNK = b" " * 65_536
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}


@asynccontextmanager
async def served(handle: Callable[[Reader, Writer], Awaitable[None]]) -> AsyncIterator[str]:
    tasks: set[asyncio.Task[Any]] = set()

    async def guarded(reader: Reader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()


async def read_request(reader: Reader) -> tuple[str, dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = 0
    for line in head.split("\r\n"):
        if line.lower().startswith("content-length:"):
            length = int(line.split(":")[1])
    body = await reader.readexactly(length) if length else b""
    return head.split(" ")[0], json.loads(body) if body else {}


def head(kind: str = "application/json", *more: str, status: str = "200 OK") -> bytes:
    return "\r\n".join(
        [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *more, "Connection: close", "", ""]
    ).encode()


def result(message: dict[str, Any], value: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": value}).encode()


async def answer(message: dict[str, Any], writer: Writer, value: Any) -> None:
    body = result(message, value)
    writer.write(head("application/json", f"Content-Length: {len(body)}") + body)
    await writer.drain()


def mcp_handler(**at: Behaviour) -> Callable[[Reader, Writer], Awaitable[None]]:
    """A correct server of protocol 2025-11-25, except in the given phases.

    The phases are initialize, list and call.
    """
    names = {"initialize": "initialize", "tools/list": "list", "tools/call": "call"}

    async def handle(reader: Reader, writer: Writer) -> None:
        verb, message = await read_request(reader)
        if verb != "POST":
            writer.write(head(status="405 No"))
            return
        method = message.get("method", "")
        if behaviour := at.get(names.get(method, method)):
            await behaviour(message, writer)
        elif method == "initialize":
            await answer(message, writer, INITIALIZED)
        elif method == "tools/list":
            tool = {"name": "t", "inputSchema": {"type": "object"}}
            await answer(message, writer, {"tools": [tool]})
        elif method == "tools/call":
            await answer(message, writer, {"content": [{"type": "text", "text": "ok"}]})
        elif method == "ping":
            await answer(message, writer, {})
        elif "id" in message:
            body = json.dumps(
                {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
            ).encode()
            writer.write(head("application/json", f"Content-Length: {len(body)}") + body)
        else:
            writer.write(head(status="202 Accepted"))
        await writer.drain()

    return handle


async def gigabyte(message: dict[str, Any], writer: Writer) -> None:
    writer.write(head("application/json", f"Content-Length: {1024**3}"))
    for _ in range(1024**3 // len(CHUNK)):
        writer.write(CHUNK)
        await writer.drain()


async def endless_stream(message: dict[str, Any], writer: Writer) -> None:
    writer.write(head("text/event-stream"))
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
    event = f"data: {json.dumps(note | {'params': {'level': 'info', 'data': 'x'}})}\n\n".encode()
    while True:
        writer.write(event * 50)
        await writer.drain()
        await asyncio.sleep(0.001)


async def endless_event(message: dict[str, Any], writer: Writer) -> None:
    writer.write(head("text/event-stream") + b"data: ")
    while True:
        writer.write(CHUNK)
        await writer.drain()


async def drip(message: dict[str, Any], writer: Writer) -> None:
    """Sends one byte at a time, so that no single read times out."""
    writer.write(head("application/json", "Content-Length: 100000"))
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def too_many_tools(message: dict[str, Any], writer: Writer) -> None:
    tools = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(100_000)]
    await answer(message, writer, {"tools": tools})


async def endless_pages(message: dict[str, Any], writer: Writer) -> None:
    await answer(message, writer, {"tools": [], "nextCursor": "again"})


async def too_deep(message: dict[str, Any], writer: Writer) -> None:
    body = (
        f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": '.encode()
        + b'{"a":' * 10_000
        + b"1"
        + b"}" * 10_000
        + b"}"
    )
    writer.write(head("application/json", f"Content-Length: {len(body)}") + body)
    await writer.drain()


async def too_many_values(message: dict[str, Any], writer: Writer) -> None:
    body = result(message, {"tools": [], "x": "@"}).replace(b'"@"', b"[" + b"[]," * 900_000 + b"1]")
    writer.write(head("application/json", f"Content-Length: {len(body)}") + body)
    await writer.drain()


@cache
def compressed_spaces() -> bytes:
    """200 MiB of spaces, compressed. Cached, because compressing takes about a second."""
    return gzip.compress(b" " * (200 * 1024 * 1024), 9)


async def gzip_bomb(message: dict[str, Any], writer: Writer) -> None:
    body = compressed_spaces()
    writer.write(
        head("application/json", "Content-Encoding: gzip", f"Content-Length: {len(body)}") + body
    )
    await writer.drain()


async def huge_definition(message: dict[str, Any], writer: Writer) -> None:
    tool = {"name": "t", "description": "x" * 100_000, "inputSchema": {"type": "object"}}
    await answer(message, writer, {"tools": [tool]})


async def duplicate_names(message: dict[str, Any], writer: Writer) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    await answer(message, writer, {"tools": [tool, tool]})


async def huge_number(message: dict[str, Any], writer: Writer) -> None:
    """Python can parse this number, but it cannot be stored."""
    schema = {"type": "object", "properties": {"a": {"maximum": 2**70}}}
    await answer(message, writer, {"tools": [{"name": "t", "inputSchema": schema}]})


async def nul_in_error(message: dict[str, Any], writer: Writer) -> None:
    """PostgreSQL cannot store this character."""
    await reject(-32603, "before\0after")(message, writer)


def reject(code: int, text: str) -> Behaviour:
    async def send(message: dict[str, Any], writer: Writer) -> None:
        error = {"code": code, "message": text}
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": error}).encode()
        writer.write(head("application/json", f"Content-Length: {len(body)}") + body)
        await writer.drain()

    return send


async def hang(message: dict[str, Any], writer: Writer) -> None:
    await asyncio.sleep(3600)


async def hang_after_head(message: dict[str, Any], writer: Writer) -> None:
    writer.write(head("application/json", "Content-Length: 10"))
    await writer.drain()
    await asyncio.sleep(3600)


async def half_closed(message: dict[str, Any], writer: Writer) -> None:
    writer.write(head("application/json", "Content-Length: 100") + b'{"jsonrpc"')
    await writer.drain()
    writer.write_eof()
    await asyncio.sleep(3600)


async def disconnect(message: dict[str, Any], writer: Writer) -> None:
    writer.close()


async def garbage(message: dict[str, Any], writer: Writer) -> None:
    writer.write(b"\x00\xff\xfe garbage\r\n\r\n")
    await writer.drain()


async def many_headers(message: dict[str, Any], writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-A: " + b"a" * 1000 + b"\r\n")
        await writer.drain()


async def wrong_content_type(message: dict[str, Any], writer: Writer) -> None:
    writer.write(head("text/html") + b"<h1>hello</h1>")
    await writer.drain()


async def wrong_shape(message: dict[str, Any], writer: Writer) -> None:
    await answer(message, writer, {"tools": "none", "content": 5, "protocolVersion": []})


def fixed(status: str, kind: str, body: bytes = b"") -> Callable[[Reader, Writer], Awaitable[None]]:
    """The same response to every request, as a server that does not implement MCP has it."""

    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(head(kind, f"Content-Length: {len(body)}", status=status) + body)
        await writer.drain()

    return handle


async def silent(reader: Reader, writer: Writer) -> None:
    """Accepts the connection and sends nothing."""
    await asyncio.sleep(3600)


BEHAVIOURS: dict[str, Behaviour] = {
    each.__name__: each
    for each in (
        gigabyte,
        endless_stream,
        endless_event,
        drip,
        too_deep,
        too_many_values,
        gzip_bomb,
        hang,
        hang_after_head,
        half_closed,
        disconnect,
        garbage,
        many_headers,
        wrong_content_type,
        wrong_shape,
    )
}
LISTINGS: dict[str, Behaviour] = {
    each.__name__: each
    for each in (
        too_many_tools,
        endless_pages,
        huge_definition,
        huge_number,
        duplicate_names,
        nul_in_error,
    )
}
