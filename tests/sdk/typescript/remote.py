"""A client with the methods of `AsyncRota` whose calls run in another program.

Arguments become those of the TypeScript SDK. What it returns becomes the models and errors of the
Python SDK, so a scenario cannot tell the two apart.
"""

import inspect
import typing
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.alias_generators import to_camel

from rota_sdk import AsyncRota, Event, TextDelta, TextSnapshot, errors
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.streams import AsyncAccountEvents, AsyncTaskEvents
from rota_sdk._paging import Page
from rota_sdk._results import TaskResult
from tests.sdk.typescript.programs import Program

# What has another name in TypeScript.
NAMES = {"page_size": "limit", "timeout": "timeoutMs"}


class RemoteClient:
    def __init__(self, program: Program, options: dict[str, Any]) -> None:
        self._program = program
        self._options = options
        self._shape = AsyncRota(base_url="http://x")

    @classmethod
    def of(cls, program: Program, **options: Any) -> "RemoteClient":
        return cls(program, named(options))

    def with_options(self, **options: Any) -> "RemoteClient":
        return RemoteClient(self._program, self._options | named(options))

    def __getattr__(self, name: str) -> Any:
        shape = getattr(self._shape, name)
        if inspect.ismethod(shape):
            return RemoteMethod(self._program, self._options, to_camel(name), shape)
        return RemoteResource(self._program, self._options, to_camel(name), shape)

    async def aclose(self) -> None:
        await self._shape.aclose()


@dataclass(frozen=True)
class RemoteResource:
    program: Program
    options: dict[str, Any]
    name: str
    shape: Any

    def __getattr__(self, name: str) -> "RemoteMethod":
        method = getattr(self.shape, name)
        path = f"{self.name}.{to_camel(name)}"
        return RemoteMethod(self.program, self.options, path, method)


@dataclass(frozen=True)
class RemoteMethod:
    program: Program
    options: dict[str, Any]
    path: str
    shape: Any

    def __call__(self, *positional: Any, **given: Any) -> "RemoteCall":
        bound = inspect.signature(self.shape).bind(*positional, **given).arguments
        returned = typing.get_type_hints(self.shape)["return"]
        arguments = self._arguments(dict(bound))
        return RemoteCall(self.program, self.options, self.path, arguments, returned)

    def _arguments(self, bound: dict[str, Any]) -> list[Any]:
        """What the method of the other SDK takes: resources, then a body or query, then options."""
        arguments = []
        fields: dict[str, Any] | None = None
        for name, parameter in inspect.signature(self.shape).parameters.items():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                value = bound.pop(name)
                arguments.append(value.id if hasattr(value, "id") else wire(value))
            elif name != "idempotency_key":
                fields = fields or {}
        key = bound.pop("idempotency_key", None)
        if fields is not None:
            arguments.append(named(bound))
        return [*arguments, {"idempotencyKey": key}] if key else arguments


class RemoteCall:
    """A value to await, or a list or stream to iterate."""

    def __init__(
        self, program: Program, options: dict[str, Any], path: str, arguments: Any, returned: Any
    ) -> None:
        self._program = program
        self._call = {"options": options, "method": path, "args": arguments}
        self._returned = returned
        self._items: AsyncIterator[Any] | None = None
        self.last_sequence: int | None = None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._value().__await__()

    async def _value(self) -> Any:
        answer = await self._ask(self._program.new_number(), {**self._call, "wants": "value"})
        result = answer["result"]
        if self._call["method"] == "tasks.createBatch":
            return [outcome(each) for each in result]
        return TypeAdapter(self._returned).validate_python(result)

    async def first_page(self) -> Page[Any]:
        answer = await self._ask(self._program.new_number(), {**self._call, "wants": "page"})
        [items] = [value for value in answer["result"].values() if isinstance(value, list)]
        return Page([self._read(item) for item in items], answer["result"]["total"])

    def __aiter__(self) -> "RemoteCall":
        self._items = self._iterate()
        return self

    async def __anext__(self) -> Any:
        if self._items is None:
            self._items = self._iterate()
        return await anext(self._items)

    async def aclose(self) -> None:
        if self._items is not None:
            await self._items.aclose()  # type: ignore[attr-defined]

    async def _iterate(self) -> AsyncIterator[Any]:
        number = self._program.new_number(self._opened)
        await self._ask(number, {**self._call, "wants": "items"})
        try:
            while "item" in (answer := await self._ask(number, {"step": "next"})):
                yield self._read(answer["item"])
        finally:
            await self._ask(number, {"step": "stop"})

    def _opened(self, last: int | None) -> None:
        self.last_sequence = last

    def _read(self, item: Any) -> Any:
        """One item, as the model that the Python SDK has for it."""
        if self._returned in (AsyncTaskEvents, AsyncAccountEvents):
            kinds = {"delta": TextDelta, "text": TextSnapshot}
            return kinds.get(item["type"], Event).model_validate(item)
        assert typing.get_origin(self._returned) is AsyncPages
        [kind] = typing.get_args(self._returned)
        return kind.model_validate(item)

    async def _ask(self, number: int, message: dict[str, Any]) -> dict[str, Any]:
        answer = await self._program.ask(number, message)
        if "error" in answer:
            raise error_of(answer["error"])
        return answer


def named(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the names of TypeScript. Times are milliseconds there."""
    found = {}
    for name, value in fields.items():
        seconds = name == "timeout" and value is not None
        found[NAMES.get(name, to_camel(name.removesuffix("_")))] = (
            value * 1000 if seconds else wire(value)
        )
    return found


def wire(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, dict):
        return {to_camel(name): wire(each) for name, each in value.items()}
    return [wire(each) for each in value] if isinstance(value, (list, tuple)) else value


def outcome(result: dict[str, Any]) -> TaskResult:
    """One task of a batch."""
    error = result["error"]
    task = TypeAdapter(typing.get_type_hints(TaskResult)["task"]).validate_python(result["task"])
    return TaskResult(task, None if error is None else typing.cast(Any, error_of(error)))


def error_of(described: dict[str, Any]) -> Exception:
    """The error of the Python SDK whose class has the same name."""
    name, message = described["class"], described["message"]
    if name == "TypeError":
        return ValueError(message)
    kind = getattr(errors, name, None)
    if kind is None:
        return AssertionError(f"{name}: {message}")
    if issubclass(kind, errors.APIError):
        return typing.cast(
            Exception,
            kind(
                message,
                status=described["status"],
                code=described.get("code"),
                details=described["details"],
                request_id=described["requestId"],
                retry_after_s=described["retryAfterS"],
            ),
        )
    if issubclass(kind, errors.APIConnectionError):
        return typing.cast(Exception, kind(message, was_sent=described["wasSent"]))
    return typing.cast(Exception, kind(message))
