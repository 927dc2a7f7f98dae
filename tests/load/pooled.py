"""25 workers of 10 connections through PgBouncer, on a PostgreSQL that accepts 100.

    python -m tests.load.pooled

Debian's PgBouncer runs in transaction mode, with a pool of 20. All tasks must complete, and
PostgreSQL must never have more connections than the pool and those of the benchmark itself.
"""

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from rota.dev.postgres import Postgres
from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.e2e.production_parts import Authority, pgbouncer
from tests.load.fleet import MOST_WORKERS, Fleet, write_json
from tests.runs.scripted import says
from tests.service import free_port

MAX_CONNECTIONS, POOL = 100, 20
ACCOUNTS = 50
# Connections of the benchmark: it counts, waits for the tasks, and creates accounts.
OWN = 5
RESULTS = Path("bench-results/pooled.json")
CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


class SmallPostgres(Postgres):
    def command(self) -> Sequence[str]:
        return [*super().command(), "-c", f"max_connections={MAX_CONNECTIONS}"]


async def watch(fleet: Fleet, counts: list[int]) -> None:
    """Counts the connections to PostgreSQL until it is cancelled."""
    async with fleet.service.owner() as connection:
        while True:
            counts.append(await connection.fetchval(CONNECTED))
            await asyncio.sleep(0.1)


async def asked(fleet: Fleet) -> int:
    """The connections that the processes may open."""
    return (len(fleet.workers) + len(fleet.serves)) * fleet.settings.database_pool_size


async def main(workers: int, tasks: int) -> int:
    configure_logging("WARNING", "console")
    if shutil.which("pgbouncer", path=f"/usr/sbin:{os.environ['PATH']}") is None:
        print("This needs PgBouncer. Install it: apt-get install pgbouncer")
        return 2
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    async with AsyncExitStack() as exits:
        data = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        stack = Stack(data / "stack", components=("redis", "temporal", "idp"))
        await exits.enter_async_context(stack)
        postgres = SmallPostgres(stack.site)
        postgres.port = free_port()
        await stack.add(postgres)
        login = urlsplit(postgres.url)
        assert login.username
        assert login.password
        passwords = {login.username: login.password}
        certificate = Authority(data).certificate("pgbouncer.test")
        bouncer = await exits.enter_async_context(
            pgbouncer(data, postgres.port, passwords, certificate, pool_size=POOL, clients=400)
        )
        through = f"postgresql://{login.username}:{login.password}@127.0.0.1:{bouncer}/pooled"
        began = time.monotonic()
        fleet = await exits.enter_async_context(
            Fleet.of(
                stack,
                "pooled",
                workers=workers,
                database_pool_size=10,
                database_url=SecretStr(through),
                # Debian's PgBouncer does not follow prepared statements.
                database_statement_cache=0,
            )
        )
        print(f"{workers} workers started in {time.monotonic() - began:.0f} s.")
        people = await fleet.people(ACCOUNTS)
        script = await fleet.scripted.script(says("Done."))
        counts: list[int] = []
        watching = asyncio.create_task(watch(fleet, counts))
        async with fleet.metered(tasks) as result:
            await fleet.tasks(people, script, tasks, at_once=50)
        watching.cancel()
        states = await fleet.counts()
        wanted = await asked(fleet)
    met = max(counts) <= POOL + OWN and states == {"COMPLETED": tasks}
    print(
        f"{states} at {result[0].per_s:.1f} tasks/s. The processes may open {wanted} connections; "
        f"PostgreSQL had at most {max(counts)} of {MAX_CONNECTIONS}: {'met' if met else 'MISSED'}"
    )
    write_json(RESULTS, {"workers": workers, "connections": max(counts), "states": states})
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=MOST_WORKERS)
    parser.add_argument("--tasks", type=int, default=500)
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.workers, options.tasks)))
