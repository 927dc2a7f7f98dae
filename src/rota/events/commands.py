"""`rota admin outbox`: shows instructions to the worker, and retries dead letters."""

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from rota.platform import clock, ids
from rota.platform.db import Database

# Wide enough for every column: a cut ID cannot be used. A terminal wraps long lines.
_WIDTH = 10_000


@dataclass(frozen=True, slots=True)
class _Entry:
    """An instruction as an operator sees it."""

    id: int
    account_id: UUID
    kind: str
    task_id: UUID | None
    attempts: int
    # None: not until something releases it.
    due_at: datetime | None
    dead_at: datetime | None
    error: str | None


async def _find(db: Database, *, dead: bool, limit: int) -> list[_Entry]:
    """The oldest instructions of all accounts, or the oldest dead letters."""
    async with db.relay() as connection:
        rows = await connection.fetch(
            """
            SELECT id, account_id, kind, task_id, attempts, nullif(due_at, 'infinity') AS due_at,
                   dead_at, error
            FROM outbox WHERE dead_at IS NOT NULL OR NOT $1 ORDER BY id LIMIT $2
            """,
            dead,
            limit,
        )
    return [_Entry(**row) for row in rows]


async def _revive(db: Database, instruction_id: int | None) -> int:
    """Lets relays try one dead letter again, or all of them. Returns how many."""
    async with db.relay() as connection:
        rows = await connection.fetch(
            """
            UPDATE outbox SET ready = true, due_at = now(), attempts = 0, dead_at = NULL
            WHERE dead_at IS NOT NULL AND ($1::bigint IS NULL OR id = $1) RETURNING id
            """,
            instruction_id,
        )
        if rows:
            connection.record("outbox.retried", {"instructions": [row["id"] for row in rows]})
    return len(rows)


async def list_command(db: Database, dead: bool, limit: int, *, as_json: bool = False) -> None:
    found = await _find(db, dead=dead, limit=limit)
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


def _wire(entry: _Entry) -> dict[str, object]:
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


def _state(entry: _Entry) -> str:
    if entry.dead_at is not None:
        return f"dead since {clock.to_wire(entry.dead_at)}"
    return f"due {clock.to_wire(entry.due_at)}" if entry.due_at else "parked"


async def retry_command(db: Database, instruction_id: int | None, *, as_json: bool = False) -> None:
    count = await _revive(db, instruction_id)
    if instruction_id is not None and not count:
        typer.secho(f"No dead letter has the ID {instruction_id}.", err=True)
        raise typer.Exit(1)
    if as_json:
        typer.echo(json.dumps({"retried": count}))
        return
    typer.echo(f"{count} {'instruction' if count == 1 else 'instructions'} will be retried.")
