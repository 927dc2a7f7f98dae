"""`rota admin outbox`: shows instructions to the worker, and retries dead letters."""

import json

import typer
from rich.console import Console
from rich.table import Table

from rota.events import outbox
from rota.platform import clock, ids
from rota.platform.db import Database

# Wide enough for every column: a cut ID cannot be used. A terminal wraps long lines.
_WIDTH = 10_000


async def list_command(db: Database, dead: bool, limit: int, *, as_json: bool = False) -> None:
    found = await outbox.entries(db, dead=dead, limit=limit)
    if as_json:
        entries = [_wire(entry) for entry in found]
        typer.echo(json.dumps({"instructions": entries}, indent=2, ensure_ascii=False))
        return
    if not found:
        typer.echo("There are no dead letters." if dead else "The outbox is empty.")
        return
    table = Table("ID", "Kind", "Account", "Task", "Attempts", "State", "Error", box=None)
    for entry in found:
        table.add_row(
            str(entry.id),
            entry.kind,
            ids.to_wire("acct", entry.account_id),
            ids.to_wire("task", entry.task_id) if entry.task_id else "",
            str(entry.attempts),
            _state(entry),
            entry.error or "",
        )
    Console(width=_WIDTH, highlight=False, markup=False).print(table)


def _wire(entry: outbox.Entry) -> dict[str, object]:
    return {
        "id": entry.id,
        "kind": entry.kind,
        "account": ids.to_wire("acct", entry.account_id),
        "task": ids.to_wire("task", entry.task_id) if entry.task_id else None,
        "attempts": entry.attempts,
        "deadAt": clock.to_wire(entry.dead_at) if entry.dead_at else None,
        "dueAt": clock.to_wire(entry.due_at) if entry.due_at else None,
        "error": entry.error,
    }


def _state(entry: outbox.Entry) -> str:
    if entry.dead_at is not None:
        return f"dead since {clock.to_wire(entry.dead_at)}"
    return f"due {clock.to_wire(entry.due_at)}" if entry.due_at else "parked"


async def retry_command(db: Database, instruction_id: int | None, *, as_json: bool = False) -> None:
    count = await outbox.revive(db, instruction_id)
    if instruction_id is not None and not count:
        typer.secho(f"No dead letter has the ID {instruction_id}.", err=True)
        raise typer.Exit(1)
    if as_json:
        typer.echo(json.dumps({"retried": count}))
        return
    typer.echo(f"{count} {'instruction' if count == 1 else 'instructions'} will be retried.")
