"""The interfaces that are for programs: the MCP server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.interfaces.interfaces import ENDED, Json, Refused

# How often a call is repeated whose connection was cut.
ATTEMPTS = 5


class Mcp:
    """The official client. Each call connects again, as a program does that is started anew."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/mcp"
        self._token = token
        self._last: dict[str, int] = {}

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        refusals: list[httpx2.Response] = []

        async def note(response: httpx2.Response) -> None:
            if response.status_code in (401, 403, 429):
                await response.aread()
                refusals.append(response)

        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with httpx2.AsyncClient(
                headers=headers, timeout=60, event_hooks={"response": [note]}
            ) as http:
                transport = streamable_http_client(self._url, http_client=http)
                async with Client(transport, mode="2026-07-28") as client:
                    yield client
        except Exception as raised:
            # The protocol has no place for the body of a request that HTTP refuses.
            if not refusals:
                raise _first(raised) from None
            error = refusals[0].json()["error"]
            status = refusals[0].status_code
            raise Refused(error["code"], status, error.get("details")) from None

    async def _call(self, tool: str, arguments: Json, **options: Any) -> Json:
        async with self._connected() as client:
            result = await client.call_tool(tool, arguments, **options)
        data: Json = result.structured_content or {}
        if result.is_error:
            error = data["error"]
            raise Refused(error["code"], error["status"], error.get("details"))
        return data

    async def create(self, key: str | None = None, **fields: Any) -> str:
        named = {"idempotencyKey": key} if key else {}
        task_id: str = (await self._call("create_task", {**fields, **named}))["task"]["id"]
        return task_id

    async def get(self, task_id: str) -> Json:
        task: Json = (await self._call("get_task", {"taskId": task_id}))["task"]
        return task

    async def wait(self, task_id: str) -> Json:
        answer: Json = {"timedOut": True}
        while answer["timedOut"]:
            known = {"afterSequence": self._last[task_id]} if task_id in self._last else {}
            wanted = {"taskId": task_id, "waitSeconds": 60, **known}
            answer = await self._call("wait_for_task", wanted)
            self._last[task_id] = answer["lastSequence"]
        task: Json = answer["task"]
        return task

    async def cancel(self, task_id: str) -> Json:
        task: Json = (await self._call("cancel_task", {"taskId": task_id}))["task"]
        return task

    async def follow(self, task_id: str) -> list[str]:
        """The progress of one wait. A wait that was cut begins again where it began."""
        wanted = {"taskId": task_id, "afterSequence": 0, "waitSeconds": 120}
        failed: Exception | None = None
        for _ in range(ATTEMPTS):
            try:
                return await self._reported(wanted)
            except Exception as error:
                failed = error
        raise AssertionError("every connection was cut") from failed

    async def _reported(self, wanted: Json) -> list[str]:
        reports: dict[float, str] = {}

        async def report(progress: float, total: float | None, message: str | None) -> None:
            reports[progress] = (message or "").split()[0]

        answer = await self._call("wait_for_task", wanted, progress_callback=report)
        assert answer["task"]["status"] in ENDED
        # The client calls back in tasks of their own, which can run after the result.
        async with asyncio.timeout(10):
            while f"task.{answer['task']['status'].lower()}" not in reports.values():
                await asyncio.sleep(0.01)
        return [reports[at] for at in sorted(reports) if "." in reports[at]]

    async def approve(self, task_id: str) -> None:
        try:
            await self._call("approve_task", {"taskId": task_id})
        except MCPError as error:
            if "Unknown tool" not in error.message:
                raise
            raise Refused("Unknown tool") from None

    async def close(self) -> None:
        return None


def _first(raised: Exception) -> Exception:
    """What went wrong first, of the tasks of a client."""
    while isinstance(raised, ExceptionGroup):
        raised = raised.exceptions[0]
    return raised
