"""Writes down how servers are and what they say of their tools, with the event that tells."""

import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rota.events import journal
from rota.mcp import queries
from rota.mcp.errors import ServerTrouble, TooSlow
from rota.mcp.model import Definition, Server, Status
from rota.platform import ids
from rota.platform.db import AccountTransaction, Database

_DOWN = ("UNREACHABLE", "AUTH_FAILED")


class Health:
    def __init__(self, db: Database, *, check_every_s: float) -> None:
        self._db = db
        self._check_every_s = check_every_s

    @property
    def due_in_s(self) -> float:
        # Spread, so that what was connected together is not asked together for ever.
        return self._check_every_s * random.uniform(0.8, 1.2)  # noqa: S311

    async def note_listing(
        self, account_id: UUID, server_id: UUID, listed: Mapping[str, Definition]
    ) -> Server | None:
        """The server after what it said of its tools; None when it is no longer connected."""
        async with self._db.write(account_id) as tx:
            server = await queries.lock(tx, server_id)
            if server is None:
                return None
            before = {tool.name: tool.live_hash for tool in await queries.tools_of(tx, server_id)}
            await queries.put_tools(tx, server_id, listed)
            tools = await queries.tools_of(tx, server_id)
            news = [
                tool.name
                for tool in tools
                if tool.waits
                and server.allows(tool.name)
                and before.get(tool.name) != tool.live_hash
            ]
            status = status_of(server, tools)
            if server.status in _DOWN:
                await tell(tx, server, "mcp.connected", status=status)
            if news:
                await tell(tx, server, "mcp.changed", status=status, tools=news[:50])
            await queries.set_state(tx, server_id, status, None, self.due_in_s)
            return await queries.find(tx, server_id)

    async def note_trouble(self, server: Server, trouble: ServerTrouble) -> Server | None:
        async with self._db.write(server.account_id) as tx:
            now = await queries.lock(tx, server.id)
            if now is None:
                return None
            if isinstance(trouble, TooSlow) and trouble.sent and now.status not in _DOWN:
                # One slow call does not make a server unreachable.
                return now
            if now.status != trouble.status:
                await tell(
                    tx,
                    now,
                    "mcp.disconnected",
                    status=trouble.status,
                    reason=trouble.message[:500],
                )
            await queries.set_state(
                tx,
                server.id,
                trouble.status,
                trouble.message[:500],
                self.due_in_s,
            )
            return await queries.find(tx, server.id)


def status_of(server: Server, tools: list[Any]) -> Status:
    waits = any(tool.waits and server.allows(tool.name) for tool in tools)
    return "CHANGED" if waits else "CONNECTED"


async def tell(tx: AccountTransaction, server: Server, kind: str, **more: Any) -> None:
    data = {"serverId": ids.to_wire("mcp", server.id), "name": server.name, **more}
    await journal.append(tx, kind, data)
