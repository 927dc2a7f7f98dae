"""`rota admin agents`: what an operator does to the catalog."""

import asyncio
from pathlib import Path
from typing import NoReturn

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from rota.agents.files import CatalogInvalid, catalog_folder
from rota.agents.sync import Change, Report, sync


def sync_command(database_url: str, folder: Path | None, *, dry_run: bool) -> None:
    """Syncs and says what became of each agent; exits with 1 where that cannot be done."""
    try:
        report = asyncio.run(sync(database_url, folder or catalog_folder(), dry_run=dry_run))
    except CatalogInvalid as invalid:
        for problem in invalid.problems:
            typer.echo(str(problem), err=True)
        _fail(f"Nothing was changed: {_counted(len(invalid.problems), 'problem')} to mend first.")
    except asyncpg.UndefinedTableError:
        _fail("The database has no catalog yet. Run: rota admin migrate")
    except (OSError, asyncpg.PostgresError) as error:
        _fail(f"The database refused ({error}). Check ROTA_MIGRATION_DATABASE_URL.")
    Console().print(_table(report))
    if dry_run:
        typer.echo("This was a dry run: nothing was changed.")


def _fail(message: str) -> NoReturn:
    typer.secho(message, err=True)
    raise typer.Exit(1)


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
