"""A client with the methods of `AsyncRota` whose calls run the program `rota`.

Where a command does what a method does, the command runs. `rota api` sends the other requests. What
the program prints becomes the models and errors of the Python SDK, so a scenario cannot tell them
apart.
"""

import asyncio
import inspect
import json
import os
import sys
import tempfile
import typing
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter

from rota_sdk import AsyncRota, Event, TextDelta, TextSnapshot, errors
from rota_sdk._async.pages import AsyncPages
from tests.cli.terminal import UNSET
from tests.sdk.commands import COMMANDS, Command

ROTA = str(Path(sys.executable).with_name("rota"))
# A line of a followed task, which can contain the longest texts.
MOST_BYTES = 64 * 1024 * 1024
# Everything that a command takes. A stream has no end.
TIMEOUT_S = 120


@dataclass(frozen=True)
class Program:
    """The program with the environment of one client."""

    url: str
    token: str
    account: str | None = None
    max_retries: int | None = None
    timeout: float | None = None

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            ROTA,
            *arguments,
            env=self._environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MOST_BYTES,
        )

    async def run(self, *arguments: str, typed: bytes = b"") -> tuple[int, bytes, bytes]:
        """The exit code, and what was printed."""
        process = await self.start(*arguments)
        async with asyncio.timeout(TIMEOUT_S):
            out, err = await process.communicate(typed)
        assert process.returncode is not None
        assert b"Traceback" not in err, err.decode()
        return process.returncode, out, err

    def _environment(self) -> dict[str, str]:
        given = {
            "ROTA_URL": self.url,
            "ROTA_API_KEY": self.token,
            "ROTA_ACCOUNT": self.account,
            "ROTA_MAX_RETRIES": self.max_retries,
            "ROTA_TIMEOUT_S": self.timeout,
            "XDG_CONFIG_HOME": tempfile.gettempdir() + "/rota-has-no-profiles",
        }
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return kept | {name: str(value) for name, value in given.items() if value not in (None, "")}


class CommandLine:
    """The client."""

    def __init__(self, program: Program) -> None:
        self._program = program
        # The program repeats requests. This client does not.
        self._sdk = AsyncRota(
            base_url=program.url,
            api_key=program.token,
            account=program.account,
            max_retries=0,
            http_client=httpx.AsyncClient(transport=ApiCommand(program)),
        )

    @classmethod
    def of(cls, *, base_url: str, api_key: str, **options: Any) -> "CommandLine":
        return cls(Program(base_url, api_key, **options))

    def with_options(self, **options: Any) -> "CommandLine":
        names = {"token" if name == "api_key" else name: each for name, each in options.items()}
        return CommandLine(replace(self._program, **names))

    def __getattr__(self, name: str) -> Any:
        shape = getattr(self._sdk, name)
        return self._method(name, shape) if inspect.ismethod(shape) else _Resource(self, name)

    def _method(self, name: str, shape: Any) -> Any:
        return _Method(self._program, COMMANDS[name], shape) if name in COMMANDS else shape

    async def aclose(self) -> None:
        await self._sdk.aclose()


@dataclass(frozen=True)
class _Resource:
    client: CommandLine
    name: str

    def __getattr__(self, name: str) -> Any:
        shape = getattr(getattr(self.client._sdk, self.name), name)
        return self.client._method(f"{self.name}.{name}", shape)


@dataclass(frozen=True)
class _Method:
    program: Program
    command: Command
    shape: Callable[..., Any]

    def __call__(self, *positional: Any, **given: Any) -> Any:
        bound = inspect.signature(self.shape).bind(*positional, **given).arguments
        arguments = self.command.arguments(**bound)
        if arguments is None:
            # The command does not have such an option.
            return self.shape(*positional, **given)
        returned = typing.get_type_hints(self.shape)["return"]
        return Call(self, arguments, returned, lambda: self.shape(*positional, **given))


class Call:
    """A value to await, or a list or stream to iterate."""

    def __init__(
        self, method: _Method, arguments: list[str], returned: Any, shape: Callable[[], Any]
    ) -> None:
        self._program, self._command = method.program, method.command
        self._arguments = [*arguments, "--json"]
        self._returned = returned
        self._shape = shape
        self._items: AsyncIterator[Any] | None = None
        self.last_sequence: int | None = None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._value().__await__()

    async def _value(self) -> Any:
        code, out, err = await self._program.run(*self._arguments)
        if not out or code not in self._command.codes:
            raise error_of(code, err)
        # A command that follows a task prints the task last.
        document = out.splitlines()[-1] if self._command.is_stream else out
        found = json.loads(document)
        if self._returned is type(None):
            assert found["deleted"] is True
            return None
        picked = found[self._command.pick] if self._command.pick else found
        return TypeAdapter(self._returned).validate_python(picked)

    async def first_page(self) -> Any:
        return await self._shape().first_page()

    def __aiter__(self) -> "Call":
        self._items = self._stream() if self._command.is_stream else self._list()
        return self

    async def __anext__(self) -> Any:
        if self._items is None:
            self.__aiter__()
        assert self._items is not None
        return await anext(self._items)

    async def aclose(self) -> None:
        if self._items is not None:
            await self._items.aclose()  # type: ignore[attr-defined]

    async def _list(self) -> AsyncIterator[Any]:
        assert typing.get_origin(self._returned) is AsyncPages
        [kind] = typing.get_args(self._returned)
        self._returned = list[kind]  # type: ignore[valid-type]
        for item in await self._value():
            yield item

    async def _stream(self) -> AsyncIterator[Any]:
        process = await self._program.start(*self._arguments)
        assert process.stdout is not None
        assert process.stderr is not None
        said = asyncio.create_task(self._hear(process.stderr))
        try:
            while line := await process.stdout.readline():
                found = json.loads(line)
                if "task" not in found:
                    kinds = {"delta": TextDelta, "text": TextSnapshot}
                    yield kinds.get(found["type"], Event).model_validate(found)
            code = await process.wait()
            err = await said
            if code not in self._command.codes:
                raise error_of(code, err)
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
            await said

    async def _hear(self, stream: asyncio.StreamReader) -> bytes:
        heard = b""
        while line := await stream.readline():
            heard += line
            if line.startswith(b"Listening after event "):
                self.last_sequence = int(line.split()[-1].rstrip(b"."))
        return heard


class ApiCommand(httpx.AsyncBaseTransport):
    """Sends requests with `rota api`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        content = await request.aread()
        arguments = ["api", request.method, request.url.raw_path.decode(), "--include", "--json"]
        if key := request.headers.get("Idempotency-Key"):
            arguments += ["--idempotency-key", key]
        if (accept := request.headers["Accept"]) != "application/json":
            arguments += ["--header", f"Accept: {accept}"]
        if content:
            arguments += ["--input", "-"]
        if "Authorization" not in request.headers:
            arguments += ["--anonymous"]
        code, out, err = await self._program.run(*arguments, typed=content)
        if not out.startswith(b"HTTP/"):
            raise transport_error(error_of(code, err))
        head, _, body = out.partition(b"\n\n")
        status, *lines = head.decode().splitlines()
        headers = dict(line.split(": ", 1) for line in lines)
        for name in ("content-length", "content-encoding", "transfer-encoding"):
            headers.pop(name, None)
        if code:
            body = json.dumps({"error": json.loads(err)["error"]}).encode()
        return httpx.Response(int(status.split()[1]), headers=headers, content=body)


def transport_error(error: Exception) -> Exception:
    if isinstance(error, errors.APITimeoutError):
        return httpx.ReadTimeout(str(error))
    return httpx.ConnectError(str(error)) if isinstance(error, errors.APIConnectionError) else error


def error_of(code: int, err: bytes) -> Exception:
    """The error of the Python SDK that this line on standard error says."""
    [line] = err.decode().splitlines()
    found = json.loads(line)["error"]
    message = found["message"]
    if found["status"] is not None:
        error = errors.api_error(
            found,
            status=found["status"],
            request_id=found["requestId"],
            retry_after_s=found["retryAfterS"],
        )
        assert code == _exit_code(error), (code, found)
        return error
    if code == 2:
        return ValueError(message)
    assert code == 1, (code, found)
    if "did not respond in time" in message:
        return errors.APITimeoutError(message)
    if message.startswith("The connection to"):
        return errors.APIConnectionError(message)
    return errors.UnreadableResponseError(message)


def _exit_code(error: errors.APIError) -> int:
    """As docs/command-line.md says."""
    return 6 if isinstance(error, errors.StaleReviewError) else 1
