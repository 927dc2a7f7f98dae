"""Notices that the database is older than it was: restored from a backup, and not yet finished.

Workers increase a number in the database, and Redis remembers it. A database whose number is lower
than the remembered one was restored. So was one on another server or timeline of PostgreSQL, unless
Redis confirms that it has the newest number: then a replica has taken over without a loss. A
database with another number of its own (OID) is a copy, for example a dump that was restored.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import asyncpg
import structlog
from prometheus_client import Gauge
from redis.asyncio import Redis
from redis.exceptions import RedisError

from rota.platform.db import Database
from rota.platform.start_checks import StartRefused

log = structlog.get_logger()

# How much a restore can lose without being noticed here, if a timeline is the only other sign.
BEAT_EVERY_S = 30.0
_REDIS_S = 2.0

FINISH = "Finish the restore first: rota admin restore finish (docs/backup.md)."
NOTHING_LOST = (
    f"{FINISH} If nothing was lost, because a replica took over or the database moved: rota admin "
    "restore finish --nothing-lost"
)
OLDER = f"The database was restored to an earlier state. {FINISH}"
GRANT = (
    "The login is not allowed to read the identity of the PostgreSQL server. Run as a "
    "superuser, in this "
    "database: GRANT EXECUTE ON FUNCTION pg_control_system() TO rota_app, rota_relay"
)
RECOVERING = (
    "PostgreSQL is a replica or is still recovering. Wait until it accepts writes, or correct "
    "ROTA_DATABASE_URL."
)
LOST = Gauge(
    "rota_database_restored", "1 if the database was restored to an earlier state, otherwise 0."
)

_READ = """
SELECT i.cluster, i.timeline, i.database, i.beat, i.beat_at, i.restores,
       s.system_identifier::text AS cluster_now,
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer AS timeline_now,
       (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database_now
FROM installation i, pg_control_system() s
"""
_BEAT = """
UPDATE installation SET beat = beat + 1, beat_at = now(), cluster = $1, timeline = $2
WHERE beat >= $3 AND database = $4 RETURNING beat
"""
_FINISH = """
UPDATE installation SET cluster = $1, timeline = $2, database = $5, beat = greatest(beat, $3) + 1,
    beat_at = now(), restores = restores + $4,
    restored_at = CASE WHEN $4 > 0 THEN now() ELSE restored_at END
RETURNING beat
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What the database says about itself, and the server on which it is now."""

    cluster: str
    timeline: int
    database: str
    beat: int
    beat_at: datetime
    restores: int
    cluster_now: str
    timeline_now: int
    database_now: str

    @property
    def has_moved(self) -> bool:
        return (self.cluster, self.timeline) != (self.cluster_now, self.timeline_now)

    @property
    def is_copy(self) -> bool:
        """Not a failover: a replica has the same number for the database."""
        return self.database != self.database_now

    @property
    def key(self) -> str:
        """The key in Redis. That of a copy is the key of the database that it was copied from."""
        return f"beat:{self.cluster}.{self.database}"


class Continuity:
    def __init__(self, db: Database, redis: Redis) -> None:
        self._db = db
        self._redis = redis
        # The highest number that this process has seen.
        self._seen = 0

    async def check(self) -> None:
        """Refuses a database that was restored and not finished."""
        row, remembered = await self.compared()
        if remembered is not None and row.beat < remembered:
            raise StartRefused(OLDER)
        if row.is_copy:
            raise StartRefused(f"The database is a copy of another one. {NOTHING_LOST}")
        if row.has_moved and remembered is None:
            raise StartRefused(f"The database {_moved(row)}. {NOTHING_LOST}")
        self._seen = row.beat

    async def check_again(self) -> None:
        """Refuses a database that was restored while this process runs."""
        # Another check may see a higher number while this one waits for its answer.
        seen = self._seen
        row = await self.read()
        restored = row.beat < seen or row.is_copy
        # `serve` reports this as well: workers stop soon.
        LOST.set(restored)
        if restored:
            raise StartRefused(OLDER)
        self._seen = max(self._seen, row.beat)

    async def beat(self) -> bool:
        """Says that the database continues. Needs the role of the relay. False: it was restored."""
        with _explained():
            async with self._db.relay() as connection:
                row = Row(**await connection.fetchrow(_READ))
                beat = await connection.fetchval(
                    _BEAT, row.cluster_now, row.timeline_now, self._seen, row.database_now
                )
        LOST.set(0 if beat else 1)
        if beat is None:
            log.error("database_restored", beat=row.beat, seen=self._seen, advice=FINISH)
            return False
        self._seen = beat
        await self._remember(row, beat)
        return True

    async def read(self) -> Row:
        return await read(self._db)

    async def finish(self, *, lost: bool) -> None:
        """Accepts the database as it is now. `lost`: it is older than it was."""
        row, known = await self.compared()
        remembered = known or 0
        if not lost and row.beat < remembered:
            raise StartRefused(
                f"Something was lost: workers had counted to {remembered}, and the database has "
                f"{row.beat}. {FINISH}"
            )
        async with self._db.relay() as connection:
            beat = await connection.fetchval(
                _FINISH,
                row.cluster_now,
                row.timeline_now,
                remembered,
                int(lost),
                row.database_now,
            )
            details = {"timeline": row.timeline_now, "lost": lost}
            connection.record("installation.restored", details)
        await self._remember(row, beat)

    async def compared(self) -> tuple[Row, int | None]:
        """The row, and the number that Redis remembered before it was read.

        A worker may count on at any time. If the row were read first, its number would be lower
        than the remembered one, as if the database had been restored.
        """
        remembered = await self._remembered(await self.read())
        return await self.read(), remembered

    async def _remembered(self, row: Row) -> int | None:
        """None if Redis is down or was emptied."""
        try:
            async with asyncio.timeout(_REDIS_S):
                found = await self._redis.get(row.key)
        except (RedisError, OSError):
            return None
        return int(found) if found is not None else None

    async def _remember(self, row: Row, beat: int) -> None:
        try:
            async with asyncio.timeout(_REDIS_S):
                # The key that the next process looks for: the row has the new server now.
                await self._redis.set(f"beat:{row.cluster_now}.{row.database_now}", beat)
        except (RedisError, OSError) as error:
            log.warning("continuity_beat_not_saved", error=repr(error))


async def read(db: Database) -> Row:
    with _explained():
        async with db.directory() as connection:
            return Row(**await connection.fetchrow(_READ))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except asyncpg.ObjectNotInPrerequisiteStateError:
        raise StartRefused(RECOVERING) from None
    except asyncpg.InsufficientPrivilegeError:
        raise StartRefused(GRANT) from None


def _moved(row: Row) -> str:
    if row.cluster != row.cluster_now:
        return "is on another PostgreSQL server"
    return f"is on timeline {row.timeline_now} of PostgreSQL, and was on {row.timeline}"
