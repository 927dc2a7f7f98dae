"""Syncs the catalog in the database with a folder of agent files, in one transaction."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

import orjson

from rota.agents import queries
from rota.agents.files import (
    AgentFile,
    CatalogInvalid,
    catalog_folder,
    name_conflicts,
    read_files,
)
from rota.agents.model import Definition
from rota.agents.output_schemas import check_catalog
from rota.agents.queries import Known
from rota.platform.db import WriteConnection, owner_connection, record


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a sync did, or would do in a dry run. Each agent is in one of the lists."""

    added: tuple[Change, ...]
    changed: tuple[Change, ...]
    unchanged: tuple[Change, ...]
    retired: tuple[Change, ...]
    # What was left out of the catalog that comes with Rota, and why.
    warnings: tuple[str, ...] = ()

    def names(self) -> dict[str, list[str]]:
        """The agents that a sync changed."""
        groups = {"added": self.added, "changed": self.changed, "retired": self.retired}
        return {
            group: [f"{change.name}@{change.version}" for change in changes]
            for group, changes in groups.items()
        }


class UnconfirmedRetirement(Exception):
    """The sync would retire agents that nobody confirmed, so it changed nothing."""


async def sync(
    database_url: str,
    folder: Path | None,
    *,
    dry_run: bool = False,
    add_only: bool = False,
    may_retire: Collection[str] | None = None,
) -> Report:
    """Syncs the catalog with the folder, or with the catalog that comes with Rota.

    The URL must be the owner's, because the service's role can only read the catalog. If any file
    is invalid, raises CatalogInvalid and changes nothing. With `add_only`, agents without a file
    stay, and no file that is added or changed can use their names and aliases; Rota's own files
    are loaded without them. With `may_retire`, no others are retired: UnconfirmedRetirement, and
    nothing changes.
    """
    files = await checked(folder or catalog_folder())
    async with (
        owner_connection(database_url) as connection,
        connection.transaction(readonly=dry_run),
    ):
        report = await _apply(
            connection,
            files,
            is_shipped=folder is None,
            dry_run=dry_run,
            add_only=add_only,
            may_retire=may_retire,
        )
        if not dry_run:
            await record(connection, "agents.synced", report.names())
        return report


async def checked(folder: Path) -> list[AgentFile]:
    """The agents of the folder. Raises CatalogInvalid with all problems."""
    files = await asyncio.to_thread(read_files, folder)
    await check_catalog(files)
    return files


async def _apply(
    connection: WriteConnection,
    files: list[AgentFile],
    *,
    is_shipped: bool,
    dry_run: bool,
    add_only: bool,
    may_retire: Collection[str] | None,
) -> Report:
    if not dry_run:
        await queries.lock(connection)
    known = await queries.known(connection)
    used = _names_that_stay(files, known) if add_only else {}
    warnings: list[str] = []
    if is_shipped:
        files, warnings = _without_used_names(files, used, known)
    added: list[Change] = []
    changed: list[Change] = []
    unchanged: list[Change] = []
    versions: list[tuple[Definition, int, bytes]] = []
    for definition in (file.definition for file in files):
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
    others = [
        Change(name, before.version)
        for name, before in sorted(known.items())
        if name not in names and not before.retired
    ]
    retired = [] if add_only else others
    if add_only:
        current += others
    if not is_shipped:
        new = {change.name for change in (*added, *changed)}
        _check_names([file for file in files if file.definition.name in new], used)
    if may_retire is not None and not {change.name for change in retired} <= {*may_retire}:
        raise UnconfirmedRetirement
    if not dry_run:
        await queries.add_versions(connection, versions)
        await queries.publish(connection, [(change.name, change.version) for change in current])
    return Report(
        _sorted(added), _sorted(changed), _sorted(unchanged), tuple(retired), tuple(warnings)
    )


def _names_that_stay(files: list[AgentFile], known: Mapping[str, Known]) -> dict[str, str]:
    """The names and aliases of agents without a file, and whose they are."""
    with_file = {file.definition.name for file in files}
    return {
        used: f"the agent {name}, which is in the catalog without a file"
        for name, agent in sorted(known.items())
        if name not in with_file and not agent.retired
        for used in (*agent.aliases, name)
    }


def _check_names(files: list[AgentFile], used: Mapping[str, str]) -> None:
    """Raises if a file uses a name or an alias of an agent that stays without a file."""
    if problems := sorted(name_conflicts(files, used)):
        raise CatalogInvalid(problems)


def _without_used_names(
    files: list[AgentFile], used: Mapping[str, str], known: Mapping[str, Known]
) -> tuple[list[AgentFile], list[str]]:
    """The files without names and aliases that other agents use, and a warning for each.

    Every upgrade loads Rota's own files. The agents of the operator must not stop it.
    """
    kept: list[AgentFile] = []
    warnings: list[str] = []
    for file in files:
        agent = file.definition
        before = known.get(agent.name)
        # An agent that is in the catalog already keeps its name, also if it is an alias of another.
        if agent.name in used and (before is None or before.retired):
            warnings.append(
                f"the agent {agent.name} was left out: its name is an alias of {used[agent.name]}"
            )
            continue
        warnings += [
            f"the agent {agent.name} has no alias `{alias}`: it is used by {used[alias]}"
            for alias in agent.aliases
            if alias in used
        ]
        aliases = tuple(alias for alias in agent.aliases if alias not in used)
        kept.append(replace(file, definition=replace(agent, aliases=aliases)))
    return kept, warnings


def _next_version(before: Known | None, content_hash: bytes) -> int:
    if before is None:
        return 1
    return before.version if before.content_hash == content_hash else before.version + 1


def _hash(definition: Definition) -> bytes:
    """The hash of the file's content. The order of the fields in the file does not change it."""
    content = asdict(definition)
    # Stored hashes were made with the field's name in the file.
    content["tier"] = content.pop("rank")
    # Fields that came later. Files without them keep their hashes.
    for name in ("use_for", "describe", "initials", "output_schema", "max_concurrent"):
        if not content[name]:
            del content[name]
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


def _sorted(changes: list[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: change.name))
