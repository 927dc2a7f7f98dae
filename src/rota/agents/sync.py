"""Makes the database's catalog the one in a folder: all of it, or nothing."""

import asyncio
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from rota.agents import queries
from rota.agents.files import read_catalog
from rota.agents.model import Definition
from rota.agents.queries import Known
from rota.platform.db import WriteConnection, owner_connection


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a sync did, or would do: each agent of the catalog is in one of these."""

    added: tuple[Change, ...]
    changed: tuple[Change, ...]
    unchanged: tuple[Change, ...]
    retired: tuple[Change, ...]


async def sync(database_url: str, folder: Path, *, dry_run: bool = False) -> Report:
    """Brings the catalog in line with the folder, in one transaction.

    The URL is the owner's: the service's own role may only read the catalog.
    Raises CatalogInvalid, and changes nothing, if any file is wrong.
    """
    definitions = await asyncio.to_thread(read_catalog, folder)
    async with (
        owner_connection(database_url) as connection,
        connection.transaction(readonly=dry_run),
    ):
        return await _apply(connection, definitions, dry_run=dry_run)


async def _apply(
    connection: WriteConnection, definitions: list[Definition], *, dry_run: bool
) -> Report:
    if not dry_run:
        await queries.lock(connection)
    known = await queries.known(connection)
    added: list[Change] = []
    changed: list[Change] = []
    unchanged: list[Change] = []
    versions: list[tuple[Definition, int, bytes]] = []
    for definition in definitions:
        content_hash = _hash(definition)
        before = known.get(definition.name)
        version = _next_version(before, content_hash)
        if before is None or before.content_hash != content_hash:
            versions.append((definition, version, content_hash))
        if before is None or before.retired:
            group = added
        else:
            group = unchanged if version == before.version else changed
        group.append(Change(definition.name, version))
    current = [*added, *changed, *unchanged]
    names = {change.name for change in current}
    retired = [
        Change(name, before.version)
        for name, before in sorted(known.items())
        if name not in names and not before.retired
    ]
    if not dry_run:
        await queries.add_versions(connection, versions)
        await queries.offer(connection, [(change.name, change.version) for change in current])
    return Report(_sorted(added), _sorted(changed), _sorted(unchanged), tuple(retired))


def _next_version(before: Known | None, content_hash: bytes) -> int:
    if before is None:
        return 1
    return before.version if before.content_hash == content_hash else before.version + 1


def _hash(definition: Definition) -> bytes:
    """Of what the file says, not of how: another order of its fields is no change."""
    return sha256(orjson.dumps(asdict(definition), option=orjson.OPT_SORT_KEYS)).digest()


def _sorted(changes: list[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: change.name))
