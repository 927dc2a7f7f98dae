"""Reads what must survive a restore from the database before it is replaced, or regularly."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from redis.asyncio import Redis

from rota.auth import signing_key_queries
from rota.platform import clock, continuity
from rota.platform.audit import INSTALLATION
from rota.platform.continuity import Continuity
from rota.platform.db import NO_USER, Database, DatabaseTimeouts
from rota.platform.errors import Conflict
from rota.restore import queries
from rota.restore.file import Header, write
from rota.restore.processes import check_stopped

# A transaction can commit long after the time in its audit entry, and clocks differ.
MARGIN = timedelta(hours=1)
# The audit trail of all accounts is read.
TIMEOUTS = DatabaseTimeouts(statement_s=3_600)


class AlreadyRestored(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "This is the restored database, or a copy. Collect from the old one: name it with "
            "--from. If it is lost, use the files that were collected before. If a replica took "
            "over or the database moved, and nothing was lost, run first: rota admin restore "
            "finish --nothing-lost"
        )


class SinceInFuture(Conflict):
    def __init__(self, since: datetime) -> None:
        super().__init__(
            f"--since {since:%Y-%m-%dT%H:%M:%SZ} is in the future. Use the moment to which "
            "PostgreSQL is restored, in UTC."
        )


async def collect(
    url: str,
    since: datetime,
    path: Path,
    redis: Redis | None,
    *,
    final: bool = False,
    ignore_connections: bool = False,
) -> int:
    """Writes the file. Returns how many accounts have changed since then. Changes nothing.

    `redis` remembers how far workers have counted in this database. None for another database.
    `final`: nothing uses the database any more, so nothing can follow.
    """
    if since > clock.now():
        raise SinceInFuture(since)
    db = Database(url, pool_size=1, timeouts=TIMEOUTS)
    await db.open()
    try:
        await db.check_relay()
        await _refuse_restored(db, redis)
        if final and not ignore_connections:
            await check_stopped(db)
        async with db.directory() as connection:
            header = Header(
                since,
                since - MARGIN,
                clock.now(),
                [key.kid for key in await signing_key_queries.current(connection)],
                await queries.used_tokens(connection),
                final,
            )
        return await write(path, header, _states(db, header.read_from))
    finally:
        await db.close()


async def _refuse_restored(db: Database, redis: Redis | None) -> None:
    """A file of a restored database would say that nothing has ended since."""
    remembered = None
    if redis is None:
        row = await continuity.read(db)
    else:
        row, remembered = await Continuity(db, redis).compared()
    if row.has_moved or row.is_copy or (remembered is not None and row.beat < remembered):
        raise AlreadyRestored


async def _states(db: Database, since: datetime) -> AsyncIterator[tuple[UUID, dict[str, Any]]]:
    async with db.relay() as connection:
        accounts = await queries.changed_accounts(connection, since, INSTALLATION)
    for account_id, kind in accounts:
        user_id = account_id if kind == "personal" else NO_USER
        async with db.snapshot(account_id, user_id) as tx:
            state = await queries.state(tx, since)
        if state is not None:
            yield account_id, state
