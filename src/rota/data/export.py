"""An export: everything that an account owns, as lines of JSON.

All lines show the same moment. The first is a manifest. The last has the number of lines of each
type and a digest of all lines before it: without it, the export is not complete.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pydantic.alias_generators import to_camel

from rota.accounts import erasure as accounts
from rota.accounts.service import AccountNotFound
from rota.auth.caller import Caller
from rota.data import metrics
from rota.data.errors import AccountErased
from rota.data.tables import EXPORTED, Table
from rota.platform import clock, json
from rota.platform.db import AccountReader, Database
from rota.platform.errors import RateLimited
from rota.platform.ids import to_wire
from rota.platform.shares import Shares

VERSION = 1
# Rows that are in memory at a time. A task can have large texts.
PAGE = 100
# An export keeps a snapshot of the database, which delays its clean-up.
MAX_SECONDS = 1_800
# How long a client can take to read a page.
STALL_SECONDS = 60
# While the account is too busy for a check of the caller, the next one is made after this.
CHECK_AGAIN_S = 0.5
# A client that reads more slowly than this, after a while, gives its place to others.
SLOW_AFTER_S, BYTES_PER_S = 20.0, 32 * 1024
# So one of two slow readers ends before this. Longer than they can take.
WAIT_S = 30.0

_BUSY = (
    "Another export of this account is in progress, or the service is busy with other exports. "
    "Try again later."
)

# The prefixes of IDs in columns of other tables.
_PREFIXES = {
    **dict.fromkeys(("account_id",), "acct"),
    **dict.fromkeys(("task_id", "parent_task_id", "child_task_id", "forked_from"), "task"),
    **dict.fromkeys(
        ("user_id", "created_by", "decided_by", "saved_by", "accepted_by", "revoked_by"), "user"
    ),
    **dict.fromkeys(("shaped_by",), "user"),
    "server_id": "mcp",
    "webhook_id": "wh",
    "event_id": "evt",
    "schedule_id": "sched",
    "saved_with": "key",
}

Check = Callable[[], Awaitable[object]]


class CutOff(Exception):
    """The export took too long, or its client reads too slowly. The client sees that the last line
    is missing."""


class _Pace:
    """How fast a client reads."""

    def __init__(self) -> None:
        self._bytes = 0
        self._seconds = 0.0

    def read(self, sent: bytes, seconds: float) -> None:
        self._bytes += len(sent)
        self._seconds += seconds
        if self._seconds > SLOW_AFTER_S + self._bytes / BYTES_PER_S:
            raise CutOff


class Exports:
    def __init__(self, db: Database) -> None:
        self._db = db
        # Each keeps a database connection.
        self._shares = Shares("exports", _BUSY, total=2, per_account=1, waiting=1, wait_s=WAIT_S)

    async def stream(self, caller: Caller, check: Check) -> AsyncGenerator[bytes]:
        """The export. `check` raises if the caller cannot read it anymore."""
        if self._shares.has_any(caller.account_id):
            raise RateLimited(_BUSY)
        async with self._shares.place(caller.account_id):
            async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
                tx.record("account.exported", {})
            async for page in self._lines(caller.account_id, check):
                yield page

    async def for_operator(self, account_id: UUID) -> AsyncIterator[bytes]:
        async with self._db.write(account_id) as tx:
            subject = await accounts.subject(tx)
            if subject is None:
                raise AccountNotFound(account_id)
            if subject.erased_at is not None:
                raise AccountErased
            tx.record("account.exported", {})

        async def nothing() -> None:
            pass

        async for page in self._lines(account_id, nothing):
            yield page

    async def _lines(self, account_id: UUID, check: Check) -> AsyncIterator[bytes]:
        ends_at = time.monotonic() + MAX_SECONDS
        counts: Counter[str] = Counter()
        digest = hashlib.sha256()
        complete = False
        pace = _Pace()
        try:
            # The user of a personal account has its ID. A company's users own their profiles.
            async with self._db.snapshot(account_id, account_id, limited=False) as tx:
                await tx.fetchval(
                    "SELECT set_config('idle_in_transaction_session_timeout', $1, true)",
                    str(STALL_SECONDS * 1000),
                )
                manifest = await _manifest(tx)
                digest.update(manifest)
                yield manifest
                for table in EXPORTED:
                    async for rows in _pages(tx, table):
                        await _checked(check)
                        # The check may have taken most of the time in which the database waits for
                        # the next statement. The client gets all of it to take the page.
                        await tx.fetchval("SELECT 1")
                        if time.monotonic() > ends_at:
                            raise CutOff
                        assert table.exported is not None
                        counts[table.exported] += len(rows)
                        page = b"".join(_line(table, row) for row in rows)
                        digest.update(page)
                        given_at = time.monotonic()
                        yield page
                        pace.read(page, time.monotonic() - given_at)
            end = {
                "lines": sum(counts.values()) + 1,
                "counts": dict(counts),
                "sha256": digest.hexdigest(),
            }
            yield json.dumps({"end": end}) + b"\n"
            complete = True
        finally:
            metrics.EXPORTS.labels("complete" if complete else "cut_off").inc()


async def _checked(check: Check) -> None:
    """Checks the caller. Waits while the account is too busy for that, because nothing may be sent
    without a check."""
    # Well before the database ends the transaction.
    ends_at = time.monotonic() + STALL_SECONDS / 2
    while True:
        try:
            await check()
        except RateLimited:
            if time.monotonic() > ends_at:
                raise CutOff from None
            await asyncio.sleep(CHECK_AGAIN_S)
        else:
            return


async def _manifest(tx: AccountReader) -> bytes:
    subject = await accounts.subject(tx)
    if subject is None or subject.erased_at is not None:
        raise AccountErased
    manifest = {
        "format": "rota-export",
        "version": VERSION,
        "account": to_wire("acct", tx.account_id),
        "kind": subject.kind,
        "name": subject.name,
        "exportedAt": clock.to_wire(clock.now()),
        "types": [table.exported for table in EXPORTED],
    }
    return json.dumps({"manifest": manifest}) + b"\n"


async def _pages(tx: AccountReader, table: Table) -> AsyncIterator[list[Any]]:
    """The rows of the account, in the order of the table's key."""
    columns = table.order.split(", ")
    after: list[Any] = []
    while True:
        condition = ""
        if after:
            values = ", ".join(f"${number}" for number in range(2, len(after) + 2))
            condition = f"AND ({table.order}) > ({values})"
        rows = await tx.fetch(
            f"""
            SELECT * FROM {table.name} WHERE {table.owner} = $1 {condition}
            ORDER BY {table.order} LIMIT {PAGE}
            """,  # noqa: S608
            tx.account_id,
            *after,
        )
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        after = [rows[-1][column] for column in columns]


def _line(table: Table, row: Any) -> bytes:
    shown = {
        to_camel(name): _value(table, name, value)
        for name, value in row.items()
        if name not in table.hidden
    }
    return json.dumps({"type": table.exported, "data": shown}) + b"\n"


def _value(table: Table, name: str, value: Any) -> Any:
    prefix = table.prefix if name == "id" else _PREFIXES.get(name)
    match value:
        case UUID():
            return to_wire(prefix, value) if prefix else value.hex
        case datetime():
            return clock.to_wire(value) if value.year < 9999 else None
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case list() if prefix:
            return [_value(table, name, each) for each in value]
    return value
