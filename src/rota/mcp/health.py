"""Saves the status of tool servers and the definitions of their tools, and appends the events."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from rota.accounts import queries as accounts
from rota.events import journal
from rota.mcp import history, queries
from rota.mcp.definitions import save as save_definitions
from rota.mcp.errors import ServerError
from rota.mcp.model import ListedDefinition, Server, ServerTool, Status
from rota.platform import ids
from rota.platform.db import AccountTransaction, Database

_DOWN = ("UNREACHABLE", "AUTH_FAILED")
MAX_EVENT_TOOLS = 50
MAX_ERROR_CHARACTERS = 500


class Health:
    def __init__(self, db: Database, *, check_every_s: float) -> None:
        self._db = db
        self._check_every_s = check_every_s

    @property
    def next_check_in_s(self) -> float:
        # Random, so that servers connected at the same time are checked at different times.
        return self._check_every_s * random.uniform(0.8, 1.2)  # noqa: S311

    async def record_tools(
        self,
        server: Server,
        listed: Mapping[str, ListedDefinition],
        latency_ms: float | None = None,
    ) -> Server | None:
        """Saves the server's current tools. Returns None if the server was disconnected."""
        async with self._db.write(server.account_id) as tx:
            await accounts.lock(tx)
            current = await queries.lock(tx, server.id)
            if current is None or current.revision != server.revision:
                # The tools of an older revision may be those of another server.
                return current
            return await self.save_tools(tx, current, listed, latency_ms)

    async def save_tools(
        self,
        tx: AccountTransaction,
        server: Server,
        listed: Mapping[str, ListedDefinition],
        latency_ms: float | None = None,
    ) -> Server:
        """Saves the tools of a server that responds, and its status. It and the account are locked.

        Raises `DefinitionsTooLarge` if the account has no room for them.
        """
        known = await queries.tool_states(tx, server.id)
        before = {tool.name: tool.live_hash for tool in known}
        await save_definitions(tx, server.id, known, listed)
        tools = await queries.tool_states(tx, server.id)
        changed = [
            tool.name
            for tool in tools
            if tool.needs_acceptance
            and server.allows(tool.name)
            and before.get(tool.name) != tool.live_hash
        ]
        status = status_of(server, tools)
        if server.status in _DOWN:
            await append_event(tx, server, "mcp.connected", status=status)
        if changed:
            await append_event(
                tx, server, "mcp.changed", status=status, tools=changed[:MAX_EVENT_TOOLS]
            )
        await queries.set_status(tx, server.id, status, None, self.next_check_in_s)
        await history.add(tx, server.id, status, latency_ms=latency_ms)
        saved = await queries.find(tx, server.id)
        assert saved is not None
        return saved

    async def update_status(self, tx: AccountTransaction, server: Server) -> Server:
        """Saves the status of a locked server after a change of what is accepted or allowed."""
        if server.status not in _DOWN:
            status = status_of(server, await queries.tool_states(tx, server.id))
            await queries.set_status(tx, server.id, status, None, self.next_check_in_s)
            if status != server.status:
                await history.add(tx, server.id, status)
        saved = await queries.find(tx, server.id)
        assert saved is not None
        return saved

    async def record_failure(self, server: Server, error: ServerError) -> Server | None:
        """Saves the failure. Returns None if the server was disconnected."""
        async with self._db.write(server.account_id) as tx:
            current = await queries.lock(tx, server.id)
            if current is None or current.revision != server.revision:
                return current
            if error.of_call:
                # One tool that fails does not make its server unreachable. The next check decides.
                await queries.check_soon(tx, server.id)
                return current
            # PostgreSQL cannot store NUL.
            message = error.message.replace("\0", "\ufffd")[:MAX_ERROR_CHARACTERS]
            if current.status != error.status:
                await append_event(
                    tx, current, "mcp.disconnected", status=error.status, reason=message
                )
            await queries.set_status(tx, server.id, error.status, message, self.next_check_in_s)
            await history.add(tx, server.id, error.status, error=message)
            return await queries.find(tx, server.id)


def status_of(server: Server, tools: Iterable[ServerTool]) -> Status:
    """The status of a server that responds."""
    if any(tool.needs_acceptance and server.allows(tool.name) for tool in tools):
        return "CHANGED"
    return "CONNECTED"


async def append_event(tx: AccountTransaction, server: Server, kind: str, **more: Any) -> None:
    data = {"serverId": ids.to_wire("mcp", server.id), "name": server.name, **more}
    await journal.append(tx, kind, data)
