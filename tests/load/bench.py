"""`make bench`: our endpoints beside bare handlers, in one run on one machine.

Machines are noisy, so every figure is a ratio: the two sides take turns, and
the middle of the rounds' ratios is what counts.
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
from tests.load import runs_bench
from tests.load.statements import BODY
from tests.service import Person, Service, free_port, until_live

PARTS = ("postgres", "redis", "temporal", "idp")
# Each has an account, and an account its own ceiling of 6,000 requests a minute.
PEOPLE = 64
CONNECTIONS = 32
TASKS_OF_A_PERSON = 4
AIM = 0.6


@dataclass
class Row:
    name: str
    target: float
    ours: list[float]
    bare: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(o / b for o, b in zip(self.ours, self.bare, strict=True))


async def wrk(url: str, script: str, seconds: int) -> float:
    """Requests a second, all of which must have succeeded."""
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
        raise RuntimeError(f"not every request of {url} succeeded:\n{text}")
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
    """A wrk script that goes round a list of requests."""

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
    """The same work asked of both sides."""

    name: str
    ours: list[Request]
    bare: list[Request]

    async def measure(self, ours_url: str, bare_url: str, rounds: int, seconds: int) -> Row:
        row = Row(self.name, AIM, [], [])
        sides = {
            "ours": (ours_url, rotating(self.ours)),
            "bare": (bare_url, rotating(self.bare)),
        }
        for number in range(rounds):
            # Who goes first changes from round to round.
            for side in ("ours", "bare") if number % 2 else ("bare", "ours"):
                getattr(row, side).append(await wrk(*sides[side], seconds))
        return row


async def people_of(service: Service) -> list[Person]:
    # The limiter counts sign-ins by address; these are not what is measured.
    people = [await service.sign_in() for _ in range(PEOPLE)]
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
        answer = await person.post("/api/tasks", BODY)
        assert answer.status_code == 201, answer.text
        task_id = ids.from_wire("task", answer.json()["task"]["id"])
        assert task_id is not None
        found.append(task_id)
    return found


async def main(rounds: int, seconds: int, only: str) -> int:
    # The service in this process only prepares; its log would bury the table.
    configure_logging("WARNING", "console")
    if shutil.which("wrk") is None:
        print("wrk is needed: apt-get install wrk", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as data:
        async with (
            Stack(Path(data), parts=PARTS) as stack,
            Service.start(stack, variant="a", name="bench") as inside,
        ):
            work = await pairs(await people_of(inside))
            async with inside.process(log_level="INFO") as service, bare_server(inside) as bare:
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
    table = Table(title="Ours beside a bare handler with the same I/O (requests/s, medians)")
    for column in ("what", "ours", "bare", "ratio", "aim", ""):
        table.add_column(column, justify="left" if column in ("what", "") else "right")
    for row in rows:
        table.add_row(
            row.name,
            f"{statistics.median(row.ours):.0f}",
            f"{statistics.median(row.bare):.0f}",
            f"{row.ratio:.2f}",
            f"≥ {row.target:.2f}",
            "holds" if row.ratio >= row.target else "falls short",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    options = parser.parse_args()
    code = asyncio.run(main(options.rounds, options.seconds, options.only))
    if options.only in runs_bench.NAME:
        code = max(code, asyncio.run(runs_bench.main()))
    raise SystemExit(code)
