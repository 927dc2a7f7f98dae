"""Passes MCP messages between standard input and output and the MCP server of a deployment.

Each message is a line of JSON. Requests run at the same time, so a wait does not delay others. What
goes wrong with one of them is the answer to that one: nothing ends the program but the end of its
input. Then it answers the requests that it has, unless nobody reads its output any more.
"""

import asyncio
import json
import select
import sys
import threading
from collections.abc import Callable
from typing import Any

import httpx

# The newest version that begins with a handshake. It is the default until the client names one.
HANDSHAKE_VERSION = "2025-11-25"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
PARSE_ERROR = -32700
SERVER_ERROR = -32000
# A wait takes minutes, and its stream sends something at least every 15 s.
TIMEOUT = httpx.Timeout(10, read=120)
CHECK_TIMEOUT_S = 10
# How often it looks whether somebody still reads the answers, once the input has ended.
LOOK_EVERY_S = 0.5

Message = dict[str, Any]


class Refused(Exception):
    """The service does not accept the credential, or has no MCP server."""


class Proxy:
    def __init__(
        self,
        http: httpx.AsyncClient,
        url: str,
        headers: dict[str, str],
        write: Callable[[str], None],
        is_read: Callable[[], bool] = lambda: True,
    ) -> None:
        self._http = http
        self._url = url
        self._headers = {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._write = write
        # Whether somebody can still read what is written.
        self._is_read = is_read
        self._version = HANDSHAKE_VERSION
        # Requests that have no answer yet, by ID.
        self._open: dict[Any, asyncio.Task[None]] = {}

    async def check(self) -> str | None:
        """Raises if the service refuses the credential. Returns what is wrong if it is not
        reached."""
        ping = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
        try:
            answer = await self._http.post(
                self._url, json=ping, headers=self._headers_of(ping), timeout=CHECK_TIMEOUT_S
            )
        except httpx.HTTPError as error:
            return _not_reached(self._url, error)
        if answer.status_code == 404:
            raise Refused(f"No MCP server answers at {self._url}. Check the URL of the service.")
        if answer.status_code in (401, 403):
            raise Refused(_problem(answer.status_code, answer.content)["message"])
        return None

    async def run(self, lines: "asyncio.Queue[bytes | None]") -> None:
        """Until the input ends, and everything in it is answered."""
        running: set[asyncio.Task[None]] = set()
        try:
            while (line := await lines.get()) is not None:
                message = self._parsed(line)
                if message is None:
                    continue
                if message.get("method") == "notifications/cancelled":
                    self._cancel(message)
                    continue
                task = asyncio.create_task(self._forward(line, message))
                running.add(task)
                task.add_done_callback(running.discard)
                if (number := message.get("id")) is not None:
                    self._open[number] = task
                if message.get("method") == "initialize":
                    # The answer says which version the next messages have.
                    await asyncio.wait([task])
            while running and self._is_read():
                await asyncio.wait(running, timeout=LOOK_EVERY_S)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _parsed(self, line: bytes) -> Message | None:
        if not line.strip():
            return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        number = message.get("id") if isinstance(message, dict) else None
        if isinstance(message, dict) and isinstance(number, str | int | None):
            return message
        self._answer(None, {"code": PARSE_ERROR, "message": "Each line must be a JSON object."})
        return None

    def _cancel(self, message: Message) -> None:
        """The service ends a request when its connection is closed."""
        params = message.get("params")
        number = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(number, str | int) and (task := self._open.get(number)) is not None:
            task.cancel()

    async def _forward(self, line: bytes, message: Message) -> None:
        number = message.get("id")
        answered = False
        try:
            async with self._http.stream(
                "POST", self._url, content=line, headers=self._headers_of(message)
            ) as response:
                kind = response.headers.get("content-type", "")
                if response.is_success and kind.startswith("text/event-stream"):
                    async for event in response.aiter_lines():
                        if event.startswith("data:") and (text := event[5:].strip()):
                            answered = self._pass_on(message, text) or answered
                else:
                    body = await response.aread()
                    answered = self._passed_body(message, response.status_code, body)
        except httpx.HTTPError as error:
            if number is not None and not answered:
                self._fail(number, _not_reached(self._url, error))
            return
        finally:
            self._open.pop(number, None)
        if number is not None and not answered:
            self._fail(number, "The service closed the connection before it answered. Try again.")

    def _passed_body(self, message: Message, status: int, body: bytes) -> bool:
        number = message.get("id")
        if status < 300:
            return bool(body) and self._pass_on(message, body.decode())
        found = _parsed_object(body)
        if found is not None and found.get("jsonrpc") == "2.0" and "error" in found:
            problem = found["error"]
        else:
            problem = _problem(status, body)
        if number is not None:
            self._answer(number, problem)
        return True

    def _pass_on(self, message: Message, text: str) -> bool:
        """Writes a message of the service. Returns whether it answers the request."""
        found = _parsed_object(text.encode())
        if found is None:
            return False
        result = found.get("result")
        if message.get("method") == "initialize" and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", self._version))
        self._write(json.dumps(found, ensure_ascii=False, separators=(",", ":")))
        return "id" in found and found["id"] == message.get("id")

    def _headers_of(self, message: Message) -> dict[str, str]:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        named = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        headers = {**self._headers, "MCP-Protocol-Version": self._version}
        if isinstance(named, str):
            # Since 2026-07-28, headers repeat what the body says.
            headers["MCP-Protocol-Version"] = named
            headers["Mcp-Method"] = str(message.get("method", ""))
            name = params.get("name") or params.get("uri") or params.get("taskId")
            if isinstance(name, str):
                headers["Mcp-Name"] = name
        return {
            name: value.encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")
            for name, value in headers.items()
        }

    def _fail(self, number: Any, text: str) -> None:
        self._answer(number, {"code": SERVER_ERROR, "message": text})

    def _answer(self, number: Any, error: Message) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}))


def _parsed_object(body: bytes) -> Message | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _problem(status: int, body: bytes) -> Message:
    """An error of the service, in the form of the protocol."""
    found = (_parsed_object(body) or {}).get("error")
    error = found if isinstance(found, dict) else {}
    text = str(error.get("message") or f"The service answered with the status {status}.")
    return {
        "code": SERVER_ERROR,
        "message": text,
        "data": {"code": error.get("code"), "status": status},
    }


def _not_reached(url: str, error: Exception) -> str:
    reason = str(error) or type(error).__name__
    return (
        f"{url} could not be reached ({reason}). Check the URL, and check that the service is "
        "running."
    )


def serve(url: str, headers: dict[str, str], note: Callable[[str], None]) -> None:
    """Runs the proxy on this process' standard input and output."""

    def write(text: str) -> None:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()

    def is_read() -> bool:
        if not hasattr(select, "poll"):
            return True  # Windows does not have it.
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        # A pipe that nobody reads has an error. Other files have none.
        return not poll.poll(0)

    async def run() -> None:
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=httpx.Limits()) as http:
            proxy = Proxy(http, url, headers, write, is_read)
            if (problem := await proxy.check()) is not None:
                note(problem)
            _read_lines(asyncio.get_running_loop(), lines)
            await proxy.run(lines)

    asyncio.run(run())


def _read_lines(loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes | None]") -> None:
    """In a thread of its own, which does not keep the program from ending."""

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
