"""`rota admin ledger`: checks the books."""

import json
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rota.credits.verify import Problem, account_ids, verify
from rota.platform import ids
from rota.platform.db import Database


async def verify_command(db: Database, account_id: UUID | None, *, as_json: bool = False) -> None:
    """Checks one account or all of them. Prints the differences and exits with 1 if any exist."""
    console = Console()
    known = await account_ids(db)
    if account_id is not None and account_id not in known:
        typer.secho(f"Account {ids.to_wire('acct', account_id)} not found.", err=True)
        raise typer.Exit(1)
    chosen = known if account_id is None else [account_id]
    found: list[Problem] = []
    hides = as_json or not console.is_terminal
    with Progress(console=console, transient=True, disable=hides) as progress:
        bar = progress.add_task("Checking accounts", total=len(chosen))
        async for problems in verify(db, chosen):
            found += problems
            progress.advance(bar)
    if as_json:
        differences = [
            {
                "account": ids.to_wire("acct", each.account_id),
                "problem": each.description,
                "location": each.location,
                "expected": each.expected,
                "actual": each.actual,
            }
            for each in found
        ]
        shown = {"accounts": len(chosen), "differences": differences}
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False, default=str))
        if found:
            raise typer.Exit(1)
        return
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
