"""`rota admin accounts` and `rota admin credits`: what operators do with the data of accounts."""

import os
import sys
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from rota.accounts import erasure as accounts
from rota.accounts.erasure import ListedAccount
from rota.accounts.service import AccountNotFound
from rota.credits import alerts, ledger
from rota.credits import queries as credits_queries
from rota.credits.money import MICROS_PER_CENT, usd
from rota.data.erasure import Erasures
from rota.data.export import Exports
from rota.data.queries import Erasure
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import Database
from rota.platform.errors import Conflict

PAGE = 500


class KeyUsed(Conflict):
    def __init__(self, key: str, amount_cents: int) -> None:
        super().__init__(
            f"The key {key} was used before, for ${usd(amount_cents)}. Use another key."
        )


async def list_command(db: Database, limit: int, name: str) -> None:
    """Prints accounts with this text in their name, the oldest first."""
    table = Table("Account", "Kind", "Name", "Tier", "Created", "State")
    last, left = UUID(int=0), limit
    while left:
        async with db.relay() as connection:
            found = await accounts.listed(connection, last, min(PAGE, left), name)
        for each in found:
            table.add_row(
                ids.to_wire("acct", each.id),
                each.kind,
                each.name,
                each.tier,
                clock.to_wire(each.created_at),
                _state(each),
            )
        if len(found) < min(PAGE, left):
            break
        last, left = found[-1].id, left - len(found)
    Console(width=max(140, Console().width)).print(table)


def _state(account: ListedAccount) -> str:
    return "erased" if account.erased_at else "open"


async def show_command(db: Database, erasures: Erasures, account_id: UUID) -> None:
    async with db.relay() as connection:
        account = await accounts.find_listed(connection, account_id)
    if account is None:
        raise AccountNotFound(account_id)
    async with db.read(account_id) as tx:
        balance = await credits_queries.balance(tx)
    cents = (balance.allowance + balance.topup) // MICROS_PER_CENT
    fields = {
        "Account": ids.to_wire("acct", account.id),
        "Kind": account.kind,
        "Name": account.name,
        "Tier": account.tier,
        "Created": clock.to_wire(account.created_at),
        "Available": f"${usd(cents)}",
        "State": _state(account),
    }
    erasure = await erasures.find(account_id)
    if erasure is not None:
        fields |= _progress(erasure)
    for name, value in fields.items():
        typer.echo(f"{name + ':':<15}{value}")


def _progress(erasure: Erasure) -> dict[str, str]:
    shown = {"Requested": clock.to_wire(erasure.requested_at)}
    if erasure.finished_at:
        shown["Erased"] = clock.to_wire(erasure.finished_at)
    else:
        shown["Stage"] = erasure.stage
    shown["Rows erased"] = str(erasure.rows_erased)
    if erasure.error:
        shown["Last error"] = f"{erasure.error} ({erasure.attempts} attempts)"
    return shown


async def export_command(exports: Exports, account_id: UUID, path: Path | None) -> None:
    """Writes an export. An operator who reads it leaves an audit entry."""
    pages = exports.for_operator(account_id)
    first = await anext(pages)
    output: BinaryIO = os.fdopen(_private(path), "wb") if path else sys.stdout.buffer
    try:
        output.write(first)
        async for page in pages:
            output.write(page)
    finally:
        if path:
            output.close()


def _private(path: Path) -> int:
    """Opens a file that only the operator can read, unless it exists."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


async def grant_command(
    db: Database, account_id: UUID, amount_cents: int, reason: str, key: str
) -> bool:
    """Adds money to an account. False if the key was used before, for the same amount."""
    async with db.write(account_id) as tx:
        subject = await accounts.subject(tx)
        if subject is None or subject.erased_at is not None:
            raise AccountNotFound(account_id)
        await journal.lock_account(tx)
        amount_micros = amount_cents * MICROS_PER_CENT
        if not await ledger.grant(tx, amount_micros, key):
            before_micros = await ledger.granted_micros(tx, key)
            if before_micros != amount_micros:
                raise KeyUsed(key, before_micros // MICROS_PER_CENT)
            return False
        await journal.append(tx, "credits.granted", {"amountCents": amount_cents})
        await alerts.report(tx)
        tx.record("credits.grant_entered", {"key": key, "reason": reason})
    return True
