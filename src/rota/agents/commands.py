"""The operator command that syncs the catalog."""

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
    """Syncs the catalog and prints the outcome for each agent. Exits with 1 on failure."""
    try:
        report = asyncio.run(sync(database_url, folder or catalog_folder(), dry_run=dry_run))
    except CatalogInvalid as invalid:
        for problem in invalid.problems:
            typer.echo(str(problem), err=True)
        _fail(f"Nothing was changed. Fix {_counted(len(invalid.problems), 'problem')} first.")
    except asyncpg.UndefinedTableError:
        _fail("The database has no catalog tables. Run: rota admin migrate")
    except (OSError, asyncpg.PostgresError) as error:
        _fail(f"Cannot use the database: {error}. Check ROTA_MIGRATION_DATABASE_URL.")
    Console().print(_table(report))
    if dry_run:
        typer.echo("This was a dry run. Nothing was changed.")


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
