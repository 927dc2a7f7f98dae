"""Every client behind one interface, so that a test runs through each."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rota_sdk import AsyncRota, Rota
from tests.sdk.command_line import CommandLine
from tests.sdk.typescript.programs import program
from tests.sdk.typescript.remote import RemoteClient
from tests.service import Service

CLIENTS = ("sync", "async")


@dataclass(frozen=True)
class AnyClient:
    """A client, synchronous or not. `use` is given the client and returns what it called."""

    wrapped: Any
    is_async: bool

    @classmethod
    def open(cls, kind: str, base_url: str, token: str, **options: Any) -> "AnyClient":
        if kind == "command_line":
            line = CommandLine.of(base_url=base_url, api_key=token, **options)
            return cls(line, is_async=True)
        if kind not in CLIENTS:
            remote = RemoteClient.of(program(kind), base_url=base_url, api_key=token, **options)
            return cls(remote, is_async=True)
        made = AsyncRota if kind == "async" else Rota
        return cls(made(base_url=base_url, api_key=token, **options), kind == "async")

    async def __call__(self, use: Callable[[Any], Any]) -> Any:
        """The result of one method."""
        if self.is_async:
            return await use(self.wrapped)
        return await asyncio.to_thread(use, self.wrapped)

    async def all(self, use: Callable[[Any], Any]) -> list[Any]:
        """Every item of a list or a stream."""
        if self.is_async:
            return [item async for item in use(self.wrapped)]
        return await asyncio.to_thread(lambda: list(use(self.wrapped)))

    async def each(self, use: Callable[[Any], Any], take: Callable[[Any], Any]) -> None:
        """Calls `take` for each item. It returns what a method of the client returns, or None."""
        if self.is_async:
            async for item in use(self.wrapped):
                if (called := take(item)) is not None:
                    await called
            return

        def run() -> None:
            for item in use(self.wrapped):
                take(item)

        await asyncio.to_thread(run)

    def with_options(self, **options: Any) -> "AnyClient":
        return replace(self, wrapped=self.wrapped.with_options(**options))

    async def close(self) -> None:
        if self.is_async:
            await self.wrapped.aclose()
        else:
            self.wrapped.close()


def url_of(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}"
