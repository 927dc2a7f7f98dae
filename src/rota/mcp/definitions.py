"""Saves tool definitions, within what an account can store."""

from collections.abc import Mapping
from uuid import UUID

from rota.mcp import queries
from rota.mcp.errors import MAX_DEFINITIONS_MIB, DefinitionsTooLarge
from rota.mcp.model import Acceptance, ListedDefinition, ServerTool
from rota.platform.db import AccountTransaction
from rota.platform.ids import to_wire

MAX_BYTES = MAX_DEFINITIONS_MIB * 1024 * 1024


async def save(
    tx: AccountTransaction,
    server_id: UUID,
    before: list[ServerTool],
    listed: Mapping[str, ListedDefinition],
    *,
    acceptance: Acceptance | None = None,
) -> None:
    """Saves the definitions that the server has now, in place of those that it had before.

    The account must be locked, so that its servers do not grow at the same time. An account that
    is over the limit can still save what needs less room than before.
    """
    hashes = {name: each.hash for name, each in listed.items()}
    known = {tool.name: tool.live_hash for tool in before if tool.live_hash is not None}
    if hashes == known:
        if list(hashes) != list(known):
            # The server lists them in another order.
            await queries.save_tools(tx, server_id, listed, acceptance=acceptance)
        return
    bytes_before = await queries.definition_bytes(tx)
    await queries.save_tools(tx, server_id, listed, acceptance=acceptance)
    bytes_after = await queries.definition_bytes(tx)
    if bytes_after > max(MAX_BYTES, bytes_before):
        raise DefinitionsTooLarge
    details = {"hashes": sorted(hashes.values())}
    tx.record("mcp.tools_saved", details, to_wire("mcp", server_id))
