"""An exported trail: a line of JSON for each entry, oldest first, and the signed head at the end.

A line has everything that is hashed, so an export can be verified without the service.
"""

import binascii
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.audit import checkpoints, heads, queries
from rota.audit.queries import Head, Stored
from rota.audit.verify import PAGE, Chain, Problem
from rota.platform import clock, json
from rota.platform.audit import NO_HASH
from rota.platform.db import Database
from rota.platform.ids import from_wire, to_wire
from rota.platform.signatures import NotSigned


class NotAnExport(Exception):
    """The file is not a complete export. The message says why."""


class TrailCut(Exception):
    """Retention has deleted entries during the export. It has to be made again."""


async def lines(db: Database, head: Head, signed: str) -> AsyncIterator[bytes]:
    """Pages of lines up to the head. Each page is a read of its own: entries never change. If
    retention deletes entries before they are read, the export ends without its last line."""
    async with db.read(head.account_id) as tx:
        checkpoint = await checkpoints.find(tx)
    last = 0
    if checkpoint is not None:
        last = checkpoint.sequence
        yield json.dumps({"checkpoint": checkpoint.signed}) + b"\n"
    while last < head.sequence:
        async with db.read(head.account_id) as tx:
            entries = await queries.after(tx, last, min(PAGE, head.sequence - last))
        if not entries:
            break  # `verify` says what is missing.
        if entries[0].sequence != last + 1 and await _was_cut(db, head.account_id, last):
            raise TrailCut
        last = entries[-1].sequence
        yield b"".join(json.dumps(to_line(entry)) + b"\n" for entry in entries)
    yield json.dumps({"head": signed}) + b"\n"


async def _was_cut(db: Database, account_id: UUID, last: int) -> bool:
    """Whether retention has deleted the entry after this one."""
    async with db.read(account_id) as tx:
        checkpoint = await checkpoints.find(tx)
    return checkpoint is not None and checkpoint.sequence > last


def to_line(entry: Stored) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "account": to_wire("acct", entry.account_id),
        "at": clock.to_wire(entry.at),
        "actor": entry.actor,
        "user": to_wire("user", entry.user_id) if entry.user_id else None,
        "via": entry.via,
        "action": entry.action,
        "resource": entry.resource,
        "commitment": entry.commitment.hex(),
        "salt": entry.salt.hex() if entry.salt is not None else None,
        "private": entry.private,
        "hash": entry.hash.hex(),
    }


def _from_line(line: dict[str, Any]) -> Stored:
    account_id = from_wire("acct", line["account"])
    if account_id is None:
        raise ValueError(line["account"])
    return Stored(
        account_id=account_id,
        sequence=line["sequence"],
        at=datetime.fromisoformat(line["at"]),
        actor=line["actor"],
        user_id=from_wire("user", line["user"]) if line["user"] else None,
        via=line["via"],
        action=line["action"],
        resource=line["resource"],
        commitment=bytes.fromhex(line["commitment"]),
        salt=bytes.fromhex(line["salt"]) if line["salt"] is not None else None,
        private=line["private"],
        hash=bytes.fromhex(line["hash"]),
    )


def _behind(
    signed: str, keys: list[dict[str, Any]], known: Mapping[UUID, dict[int, bytes]]
) -> Chain:
    """A chain that begins behind a checkpoint."""
    try:
        checkpoint = checkpoints.read(signed, keys)
    except NotSigned as error:
        raise NotAnExport(f"The checkpoint cannot be trusted. {error}") from None
    chain = Chain(checkpoint.account_id, kept=known.get(checkpoint.account_id, {}))
    chain.begin_behind(checkpoint, keys)
    return chain


def check(
    text: Iterable[bytes],
    keys: list[dict[str, Any]],
    kept: Mapping[UUID, dict[int, bytes]] | None = None,
) -> tuple[Head, list[Problem]]:
    """Verifies an export, also against heads that were kept. Returns its head and the problems."""
    known = kept or {}
    chain: Chain | None = None
    signed: str | None = None
    for number, raw in enumerate(text, 1):
        if signed is not None:
            raise NotAnExport(f"Line {number} follows the head, which must be the last line.")
        try:
            line = json.exact(raw)
            if isinstance(line.get("head"), str):
                signed = line["head"]
                continue
            if number == 1 and isinstance(line.get("checkpoint"), str):
                chain = _behind(line["checkpoint"], keys, known)
                continue
            entry = _from_line(line)
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
            raise NotAnExport(f"Line {number} is not an audit entry.") from None
        chain = chain or Chain(entry.account_id, kept=known.get(entry.account_id, {}))
        chain.add(entry)
    if signed is None:
        raise NotAnExport("The last line is not a head. The export is not complete.")
    try:
        account_id, place, digest = heads.read(signed, keys)
    except NotSigned as error:
        raise NotAnExport(f"The head cannot be trusted. {error}") from None
    chain = chain or Chain(account_id, hash=NO_HASH, kept=known.get(account_id, {}))
    head = Head(account_id, place, digest)
    if chain.account_id != account_id:
        raise NotAnExport("The head belongs to another account.")
    if set(known) - {account_id}:
        raise NotAnExport("A head that was kept belongs to another account.")
    return head, chain.finish(head)
