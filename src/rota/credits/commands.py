"""`rota admin ledger`: checks the books."""

from uuid import UUID

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rota.credits.verify import Problem, account_ids, verify
from rota.platform import ids
from rota.platform.db import Database


async def verify_command(db: Database, account_id: UUID | None) -> None:
    """Checks one account or all of them. Prints the differences and exits with 1 if any exist."""
    console = Console()
    known = await account_ids(db)
    if account_id is not None and account_id not in known:
        typer.secho(f"Account {ids.to_wire('acct', account_id)} not found.", err=True)
        raise typer.Exit(1)
    chosen = known if account_id is None else [account_id]
    found: list[Problem] = []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("Checking accounts", total=len(chosen))
        async for problems in verify(db, chosen):
            found += problems
            progress.advance(bar)
    checked = f"{len(chosen)} account{'' if len(chosen) == 1 else 's'} checked"
    if not found:
        console.print(f"{checked}, no differences.")
        return
    console.print(_table(found))
    console.print(f"{checked}, {len(found)} difference{'' if len(found) == 1 else 's'}.")
    raise typer.Exit(1)


def _table(found: list[Problem]) -> Table:
    table = Table("Account", "Problem", "Location", "Expected", "Actual")
    for problem in found:
        table.add_row(
            ids.to_wire("acct", problem.account_id),
            problem.description,
            problem.location,
            str(problem.expected),
            str(problem.actual),
        )
    return table
