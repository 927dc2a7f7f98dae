"""`rota admin ledger`: what an operator does to the books, which is to check them."""

from uuid import UUID

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rota.credits.verify import Problem, accounts, verify
from rota.platform import ids
from rota.platform.db import Database


async def verify_command(db: Database, account_id: UUID | None) -> None:
    """Checks one account or all; exits with 1 and says what differs where something does."""
    console = Console()
    everyone = await accounts(db)
    if account_id is not None and account_id not in everyone:
        typer.secho("There is no such account.", err=True)
        raise typer.Exit(1)
    chosen = everyone if account_id is None else [account_id]
    wrong: list[Problem] = []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for_all = progress.add_task("Checking the books", total=len(chosen))
        async for found in verify(db, chosen):
            wrong += found
            progress.advance(for_all)
    checked = f"{len(chosen)} account{'' if len(chosen) == 1 else 's'} checked"
    if not wrong:
        console.print(f"{checked}: every book agrees.")
        return
    console.print(_table(wrong))
    console.print(f"{checked}, {len(wrong)} difference{'' if len(wrong) == 1 else 's'}.")
    raise typer.Exit(1)


def _table(wrong: list[Problem]) -> Table:
    table = Table("Account", "What", "Where", "Should be", "Is")
    for each in wrong:
        table.add_row(
            ids.to_wire("acct", each.account_id),
            each.what,
            each.where,
            str(each.expected),
            str(each.found),
        )
    return table
