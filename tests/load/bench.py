"""`make bench`: Rota's endpoints compared with bare handlers on the same machine.

Machines are noisy, so every result is a ratio. The two sides take turns in many short rounds, and
the result is the median of the ratios of all rounds. What PostgreSQL does from time to time in the
background is switched off, because it would slow down one side or the other at random.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import httpx
from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.telemetry import configure_logging
from tests.load.statements import BODY
from tests.service import Person, Service, free_port, until_live

# Tasks of the benchmark are not hosted, so it needs no Temporal.
COMPONENTS = ("postgres", "redis", "idp")
# Each user has an account, and each account can send 6,000 requests per minute.
USERS = 64
CONNECTIONS = 32
TASKS_OF_A_PERSON = 4
TARGET = 0.65
WARM_UP_S = 3


@dataclass
class Row:
    name: str
    target: float
    rota: list[float]
    bare: list[float]

    @property
    def ratios(self) -> list[float]:
        return sorted(r / b for r, b in zip(self.rota, self.bare, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> str:
        """The middle half of the ratios."""
        quarter = len(self.ratios) // 4
        return f"{self.ratios[quarter]:.2f} to {self.ratios[-1 - quarter]:.2f}"


async def wrk(url: str, script: str, seconds: int) -> float:
    """Returns the requests per second. Every request must succeed."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        process = await asyncio.create_subprocess_exec(
            "wrk",
            "-t1",
            f"-c{CONNECTIONS}",
            f"-d{seconds}s",
            "-s",
            file.name,
            url,
            stdout=asyncio.subprocess.PIPE,
        )
        text = (await process.communicate())[0].decode()
    if "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(f"Some requests to {url} failed:\n{text}")
    found = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert found, text
    return float(found[1])


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None


def rotating(requests: list[Request]) -> str:
    """A wrk script that repeats a list of requests."""

    def lua(request: Request) -> str:
        headers = ",".join(f'["{k}"]="{v}"' for k, v in request.headers.items())
        body = f"[==[{request.body}]==]" if request.body is not None else "nil"
        return f'wrk.format("{request.method}","{request.path}",{{{headers}}},{body})'

    return f"""
    init = function(args)
      requests = {{{",".join(map(lua, requests))}}}
      at = 0
    end
    request = function()
      at = at % #requests + 1
      return requests[at]
    end
    """


@asynccontextmanager
async def bare_server(service: Service) -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.load.bare",
        env=os.environ
        | {
            "PORT": str(port),
            "ROTA_DATABASE_URL": service.database_url,
            "ROTA_REDIS_URL": service.settings.redis_url.get_secret_value(),
        },
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url) as http, asyncio.timeout(30):
            while True:
                try:
                    await http.get("/nothing")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        await process.wait()


@dataclass(frozen=True)
class Pair:
    """The same requests for both sides."""

    name: str
    rota: list[Request]
    bare: list[Request]

    async def measure(self, rota_url: str, bare_url: str, rounds: int, seconds: int) -> Row:
        row = Row(self.name, TARGET, [], [])
        sides = {
            "rota": (rota_url, rotating(self.rota)),
            "bare": (bare_url, rotating(self.bare)),
        }
        for url, script in sides.values():
            await wrk(url, script, WARM_UP_S)
        for number in range(rounds):
            # The sides take turns to go first.
            for side in ("rota", "bare") if number % 2 else ("bare", "rota"):
                getattr(row, side).append(await wrk(*sides[side], seconds))
        return row


async def quieten(service: Service) -> None:
    """Vacuums once, and switches off vacuum and checkpoints for the time of the measurement."""
    async with service.owner() as connection:
        await connection.execute("VACUUM ANALYZE")
        for setting in ("autovacuum = off", "checkpoint_timeout = '1h'", "max_wal_size = '8GB'"):
            await connection.execute(f"ALTER SYSTEM SET {setting}")
        await connection.execute("SELECT pg_reload_conf()")


async def people_of(service: Service) -> list[Person]:
    # Signed in before the measurement, because the limiter counts sign-ins by address.
    people = [await service.sign_in() for _ in range(USERS)]
    async with service.owner() as connection:
        await connection.execute("UPDATE accounts SET tier = 'enterprise'")
    return people


async def pairs(people: list[Person]) -> list[Pair]:
    tasks = [(person, task) for person in people for task in await _tasks_of(person)]
    body, typed = json.dumps(BODY), {"Content-Type": "application/json"}
    return [
        Pair(
            "GET /api/me",
            [Request("GET", "/api/me", p.auth) for p in people],
            [Request("GET", f"/me/{p.user_id}") for p in people],
        ),
        Pair(
            "GET /api/tasks/:id",
            [Request("GET", f"/api/tasks/{ids.to_wire('task', t)}", p.auth) for p, t in tasks],
            [Request("GET", f"/tasks/{p.user_id}/{t}") for p, t in tasks],
        ),
        Pair(
            "POST /api/tasks",
            [Request("POST", "/api/tasks", p.auth | typed, body) for p in people],
            [Request("POST", f"/tasks/{p.user_id}", typed, body) for p in people],
        ),
    ]


async def _tasks_of(person: Person) -> list[UUID]:
    found = []
    for _ in range(TASKS_OF_A_PERSON):
        response = await person.post("/api/tasks", BODY)
        assert response.status_code == 201, response.text
        task_id = ids.from_wire("task", response.json()["task"]["id"])
        assert task_id is not None
        found.append(task_id)
    return found


async def main(rounds: int, seconds: int, only: str) -> int:
    # The service in this process only creates data. Its log would hide the table.
    configure_logging("WARNING", "console")
    if shutil.which("wrk") is None:
        print("This benchmark needs wrk. Install it: apt-get install wrk", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as data:
        async with (
            Stack(Path(data), components=COMPONENTS) as stack,
            Service.start(stack, variant="a", name="bench") as inside,
        ):
            work = await pairs(await people_of(inside))
            await quieten(inside)
            async with (
                inside.process(fresh=True, log_level="INFO") as service,
                bare_server(inside) as bare,
            ):
                url = str(service.http.base_url)
                await until_live(service.http)
                rows = [
                    await pair.measure(url, bare, rounds, seconds)
                    for pair in work
                    if only in pair.name
                ]
    report(rows)
    return 0 if all(row.ratio >= row.target for row in rows) else 1


def report(rows: list[Row]) -> None:
    table = Table(
        title="Rota compared with bare handlers that do the same I/O (requests/s, medians)"
    )
    for column in ("endpoint", "rota", "bare", "ratio", "middle half", "target", ""):
        table.add_column(column, justify="left" if column in ("endpoint", "") else "right")
    for row in rows:
        table.add_row(
            row.name,
            f"{statistics.median(row.rota):.0f}",
            f"{statistics.median(row.bare):.0f}",
            f"{row.ratio:.2f}",
            row.spread,
            f"≥ {row.target:.2f}",
            "pass" if row.ratio >= row.target else "FAIL",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--only", default="", help="only endpoints whose name contains this")
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.rounds, options.seconds, options.only)))
