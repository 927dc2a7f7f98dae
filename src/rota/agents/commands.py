"""The operator commands that check agent files and sync the catalog with them."""

import asyncio
import json
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.table import Table

from rota.agents.files import CatalogInvalid
from rota.agents.sync import Change, Report, UnconfirmedRetirement, checked, sync


def check_command(folder: Path) -> None:
    """Checks the files as a sync does, without a database. Exits with 1 if one is invalid."""
    try:
        found = asyncio.run(checked(folder))
    except CatalogInvalid as invalid:
        _print_problems(invalid)
        _fail(f"Fix {_counted(len(invalid.problems), 'problem')}.")
    typer.echo(f"{_counted(len(found), 'agent')} checked: no problems.")


def sync_command(
    database_url: str,
    folder: Path | None,
    *,
    dry_run: bool,
    add_only: bool,
    yes: bool,
    as_json: bool = False,
) -> None:
    """Shows what a sync changes, asks before it retires agents, and syncs. Exits with 1 if a file
    is invalid or nobody confirmed a retirement."""
    if yes or dry_run:
        report = _sync(database_url, folder, dry_run=dry_run, add_only=add_only)
        _print(report, as_json)
        if dry_run and not as_json:
            typer.echo("This was a dry run. Nothing was changed.")
        return
    planned = _sync(database_url, folder, dry_run=True, add_only=add_only)
    _print(planned, as_json)
    if planned.retired:
        _confirm(len(planned.retired))
    # Another sync can have changed the catalog meanwhile.
    confirmed = [change.name for change in planned.retired]
    _sync(database_url, folder, add_only=add_only, may_retire=confirmed)


def _sync(
    database_url: str,
    folder: Path | None,
    *,
    dry_run: bool = False,
    add_only: bool = False,
    may_retire: Collection[str] | None = None,
) -> Report:
    work = sync(database_url, folder, dry_run=dry_run, add_only=add_only, may_retire=may_retire)
    try:
        return asyncio.run(work)
    except CatalogInvalid as invalid:
        _print_problems(invalid)
        _fail(f"Nothing was changed. Fix {_counted(len(invalid.problems), 'problem')} first.")
    except UnconfirmedRetirement:
        _fail(
            "The catalog changed in the meantime, so these changes were not applied. Run "
            "the command again."
        )


def _print_problems(invalid: CatalogInvalid) -> None:
    for problem in invalid.problems:
        typer.echo(str(problem), err=True)


def _confirm(number: int) -> None:
    what = f"{_counted(number, 'agent')} without a file"
    if not _is_terminal():
        _fail(
            f"Nothing was changed: this would retire {what}. Use --yes to retire them, or "
            "--add-only to keep them."
        )
    if not typer.confirm(f"Retire {what}? No new task can use them then.", err=True):
        _fail("Nothing was changed. --add-only keeps agents without a file.")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _fail(message: str) -> NoReturn:
    typer.secho(message, err=True)
    raise typer.Exit(1)


def _print(report: Report, as_json: bool) -> None:
    for warning in report.warnings:
        typer.echo(f"Warning: {warning}.", err=True)
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2, ensure_ascii=False))
    else:
        Console().print(_table(report))


def _table(report: Report) -> Table:
    table = Table("Outcome", "Count", "Agents (version)")
    rows = {
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "retired": report.retired,
    }
    for outcome, changes in rows.items():
        names = "" if outcome == "unchanged" else _names(changes)
        table.add_row(outcome, str(len(changes)), names)
    return table


def _names(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{change.name} ({change.version})" for change in changes)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
