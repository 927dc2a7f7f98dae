"""`rota admin audit`: verifies and exports trails, and signs their heads."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from rota.audit import export, heads, queries
from rota.audit.export import NotAnExport
from rota.audit.queries import Head
from rota.audit.service import AuditTrail
from rota.audit.verify import Problem, verify
from rota.platform import ids
from rota.platform.db import Database
from rota.platform.signatures import NotSigned

Kept = dict[UUID, dict[int, bytes]]


def _read_kept(
    kept_files: Sequence[Path], keys: list[dict[str, Any]]
) -> tuple[Kept, list[Problem]]:
    """The heads that were kept, by account and place, and those that contradict each other."""
    kept: Kept = {}
    found: list[Problem] = []
    for path in kept_files:
        try:
            of_account, place, digest = heads.read(path.read_text(), keys)
        except NotSigned as error:
            typer.secho(f"{path}: {error}", err=True)
            raise typer.Exit(2) from None
        if place and kept.setdefault(of_account, {}).setdefault(place, digest) != digest:
            found.append(Problem(of_account, place, "two heads that were kept differ"))
    return kept, found


async def verify_command(
    db: Database,
    account_id: UUID | None,
    kept_files: Sequence[Path],
    keys: list[dict[str, Any]],
    *,
    as_json: bool = False,
) -> None:
    """Checks one account or all of them. Prints the problems and exits with 1 if there are any."""
    kept, found = _read_kept(kept_files, keys)
    async with db.relay(by_index=True) as connection:
        known = await queries.account_ids(connection)
    if account_id is not None and account_id not in {*known, *kept}:
        _refuse(account_id)
    # An account whose whole trail is gone has only the head that was kept.
    chosen = sorted({*known, *kept} if account_id is None else {account_id, *kept})
    entries = 0
    async for count, problems in verify(db, chosen, kept, keys):
        entries += count
        found += problems
    checked = f"{_many(len(chosen), 'account')} and {_many(entries, 'entry')} checked"
    _report(found, checked, {"accounts": len(chosen), "entries": entries} if as_json else None)


def verify_file_command(
    path: Path,
    keys: list[dict[str, Any]],
    kept_files: Sequence[Path] = (),
    *,
    as_json: bool = False,
) -> None:
    """Checks an export, without a database."""
    kept, found = _read_kept(kept_files, keys)
    try:
        with path.open("rb") as lines:
            head, problems = export.check(lines, keys, kept)
    except NotAnExport as error:
        typer.secho(str(error), err=True)
        raise typer.Exit(1) from None
    account = ids.to_wire("acct", head.account_id)
    checked = f"{_many(head.sequence, 'entry')} of {account} checked"
    counted = {"accounts": 1, "entries": head.sequence} if as_json else None
    _report([*found, *problems], checked, counted)


def _report(found: list[Problem], checked: str, counted: dict[str, int] | None) -> None:
    """Prints the problems: as JSON beside these numbers, or as a table."""
    if counted is not None:
        problems = [
            {
                "account": ids.to_wire("acct", each.account_id),
                "entry": each.sequence,
                "problem": each.description,
            }
            for each in found
        ]
        typer.echo(json.dumps({"checked": counted, "problems": problems}, indent=2))
        if found:
            raise typer.Exit(1)
        return
    console = Console()
    if not found:
        console.print(f"{checked}, no problems.", highlight=False)
        return
    table = Table("Account", "Entry", "Problem")
    for problem in found:
        account = ids.to_wire("acct", problem.account_id)
        table.add_row(account, str(problem.sequence), problem.description)
    Console(width=max(120, console.width)).print(table)
    console.print(f"{checked}, {_many(len(found), 'problem')}.", highlight=False)
    raise typer.Exit(1)


def _many(count: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


async def export_command(
    db: Database, trail: AuditTrail, account_id: UUID, path: Path | None
) -> None:
    """Writes the trail as lines of JSON. An operator who reads it leaves an entry."""
    await _require_trail(db, account_id)
    async with db.write(account_id) as tx:
        tx.record("audit.exported", {})
    head = await _head(db, account_id)
    output: BinaryIO = path.open("wb") if path else sys.stdout.buffer
    try:
        async for page in export.lines(db, head, trail.sign(head)):
            output.write(page)
    finally:
        if path:
            output.close()


async def head_command(db: Database, trail: AuditTrail, account_id: UUID) -> None:
    await _require_trail(db, account_id)
    typer.echo(trail.sign(await _head(db, account_id)))


async def _require_trail(db: Database, account_id: UUID) -> None:
    async with db.relay(by_index=True) as connection:
        if account_id not in await queries.account_ids(connection):
            _refuse(account_id)


def _refuse(account_id: UUID) -> NoReturn:
    account = ids.to_wire("acct", account_id)
    typer.secho(f"{account} has no audit trail. Check the ID of the account.", err=True)
    raise typer.Exit(1)


async def _head(db: Database, account_id: UUID) -> Head:
    async with db.read(account_id) as tx:
        return await queries.head(tx)
