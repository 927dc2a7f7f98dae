"""The tools of the scripted tool server, for runs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import httpx

from rota.agents.model import AgentVersion
from rota.platform.db import AccountTransaction
from rota.platform.errors import RateLimited
from rota.runs.tools import AccountBusy, Tool, ToolResult, ToolUnavailable


class ScriptedTools:
    """A `ToolSource`: `desk/lookup` reads and `desk/send` writes."""

    def __init__(self, url: str, *, fixed: bool = False) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=60)
        # In benchmarks the tools are listed once for all accounts.
        self._fixed = fixed
        self._listed: list[Tool] = []

    async def tools(self, account_id: UUID, agent: AgentVersion) -> Sequence[Tool]:
        if not self._listed or not self._fixed:
            self._listed = await self._list(account_id)
        return [tool for tool in self._listed if agent.may_use(tool.full_name)]

    async def _list(self, account_id: UUID) -> list[Tool]:
        answer = await self._http.get(f"/definitions/{account_id.hex}")
        return [
            Tool(
                name=definition["name"],
                server=definition["server"],
                description=definition["description"],
                arguments_schema=definition["argumentsSchema"],
                read_only=definition["readOnly"],
                server_revision=(definition["server"], 1),
            )
            for definition in answer.json()
        ]

    async def current(
        self, tx: AccountTransaction, agent: AgentVersion, server_id: str, name: str
    ) -> Tool | None:
        tools = await self.tools(tx.account_id, agent)
        return next((tool for tool in tools if (tool.server, tool.name) == (server_id, name)), None)

    async def call(
        self,
        account_id: UUID,
        tool: Tool,
        arguments: dict[str, Any],
        key: str,
        before_send: Callable[[], Awaitable[None]],
    ) -> ToolResult:
        await before_send()
        try:
            answer = await self._http.post(
                f"/tools/{tool.name}", json={"arguments": arguments, "key": key}
            )
        except httpx.ConnectError as error:
            raise ToolUnavailable(str(error)) from error
        if answer.status_code == 429:
            message = "The account uses its share of the tools."
            raise AccountBusy(RateLimited(message, retry_after_s=2))
        if answer.status_code == 503:
            raise ToolUnavailable("The tool server is not available.")
        answer.raise_for_status()
        body = answer.json()
        return ToolResult(body["content"], body["isError"])
