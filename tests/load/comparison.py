"""Compares tasks of one model call with other engines, over HTTP, on the same machine.

    python -m tests.load.comparison

Rota runs beside `langgraph dev` (LangGraph's server, in memory) and beside DBOS (a FastAPI app with
one workflow, on the same PostgreSQL server). All call the same instant model. Each of 32 clients
starts a task, waits for its output and starts the next one. The engines take turns. The results are
tasks per second, and the medians of the ratios of all rounds.

The others are not dependencies of Rota. They are installed from PyPI into a temporary folder, each
into an environment of its own. An engine that cannot be installed is skipped, with a message.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg
import httpx
from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.world import PARTS, World
from tests.service import Person, free_port

AT_ONCE = 32
WARM_UP_S = 3
# Rota must be at least as fast as this one.
AHEAD_OF = "langgraph dev"
SOURCES = Path(__file__).parent / "rivals"
TEXT = "Hello"

# Does one task, as the client with this number.
Client = Callable[[int], Awaitable[None]]
# Runs below a folder. Gives its version and its client.
Engine = Callable[[Path], AbstractAsyncContextManager[tuple[str, Client]]]


class NotInstalled(Exception):
    pass


def install(folder: Path, *packages: str) -> Path:
    """Creates an environment with these packages. Returns the folder of its programs."""
    uv = Path(sys.executable).with_name("uv")
    programs = folder / "bin"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", programs / "python", *packages],
    ):
        done = subprocess.run(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise NotInstalled(done.stderr)
    return programs


def version(programs: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version('{package}'))"
    done = subprocess.run([programs / "python", "-c", code], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


@asynccontextmanager
async def process(
    command: Sequence[str | Path], folder: Path, port: int, variables: Mapping[str, str]
) -> AsyncIterator[httpx.AsyncClient]:
    """Runs another engine until it answers `GET /ok`. Returns a client of it."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    log = folder / "log"
    with log.open("wb") as output:
        started = await asyncio.create_subprocess_exec(
            *map(str, command),
            cwd=folder,
            env=inherited | dict(variables),
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}"
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    try:
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
            async with asyncio.timeout(120):
                while not await _answers(http):
                    assert started.returncode is None, log.read_text()[-3000:]
                    await asyncio.sleep(0.1)
            yield http
    finally:
        if started.returncode is None:
            started.terminate()
        try:
            async with asyncio.timeout(15):
                await started.wait()
        except TimeoutError:
            started.kill()
            await started.wait()


async def _answers(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/ok")).status_code == 200
    except httpx.TransportError:
        return False


@asynccontextmanager
async def langgraph(folder: Path, model_url: str) -> AsyncIterator[tuple[str, Client]]:
    programs = install(folder / "environment", "langgraph-cli[inmem]", "httpx")
    shutil.copy(SOURCES / "langgraph_graph.py", folder / "graph.py")
    config = {"dependencies": ["."], "graphs": {"agent": "./graph.py:graph"}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = free_port()
    variables = {
        "MODEL_URL": model_url,
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    options = ["--no-browser", "--no-reload", "--port", str(port)]
    # By default it runs ten at the same time.
    options += ["--n-jobs-per-worker", str(AT_ONCE)]
    command = [str(programs / "langgraph"), "dev", *options]
    async with process(command, folder, port, variables) as http:

        async def run(_: int) -> None:
            body = {"assistant_id": "agent", "input": {"text": TEXT}}
            answer = await http.post("/runs/wait", json=body)
            assert answer.status_code == 200, answer.text
            assert answer.json()["output"] == "Done.", answer.text

        yield version(programs, "langgraph-api"), run


@asynccontextmanager
async def dbos(
    folder: Path, model_url: str, database_url: str
) -> AsyncIterator[tuple[str, Client]]:
    programs = install(folder / "environment", "dbos", "fastapi", "uvicorn[standard]", "httpx")
    port = free_port()
    variables = {"MODEL_URL": model_url, "DATABASE_URL": database_url, "PORT": str(port)}
    async with process(
        [programs / "python", SOURCES / "dbos_app.py"], folder, port, variables
    ) as http:

        async def run(_: int) -> None:
            answer = await http.post("/runs", json={"text": TEXT})
            assert answer.status_code == 200, answer.text
            assert answer.json()["output"] == "Done.", answer.text

        yield version(programs, "dbos"), run


class RotaClient:
    """Creates tasks and learns from its event stream when they end."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._ended: dict[str, asyncio.Future[None]] = {}
        self._open = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        http, auth = self._person.service.http, self._person.auth
        path = "/api/events?type=task.completed"
        async with http.stream("GET", path, headers=auth, timeout=None) as events:
            assert events.status_code == 200, events
            self._open.set()
            async for line in events.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    self._future(event["taskId"]).set_result(None)

    def _future(self, task_id: str) -> asyncio.Future[None]:
        return self._ended.setdefault(task_id, asyncio.get_running_loop().create_future())

    async def run(self) -> None:
        async with asyncio.timeout(60):
            await self._open.wait()
            body = {"name": "A task", "agent": "writer", "input": TEXT}
            answer = await self._person.post("/api/tasks", body)
            assert answer.status_code == 201, answer.text
            task_id = answer.json()["task"]["id"]
            await self._future(task_id)
        del self._ended[task_id]
        task = (await self._person.get(f"/api/tasks/{task_id}")).json()["task"]
        assert (task["status"], task["output"]) == ("COMPLETED", "Done."), task

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


async def rate(client: Client, seconds: float) -> float:
    """Tasks per second of clients that do one task after the other."""
    done = 0
    began = time.monotonic()

    async def work(number: int) -> None:
        nonlocal done
        while time.monotonic() < began + seconds:
            await client(number)
            done += 1

    await asyncio.gather(*map(work, range(AT_ONCE)))
    return done / (time.monotonic() - began)


async def new_database(stack: Stack, name: str) -> str:
    url = stack.endpoints.database_url
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return f"{url.rpartition('/')[0]}/{name}"


async def measure(
    stack: Stack, folder: Path, rounds: int, seconds: float
) -> dict[str, list[float]]:
    async with AsyncExitStack() as exits:
        world = await exits.enter_async_context(
            World.start(stack, "comparison", workers=1, run_heartbeat_s=15.0)
        )
        clients = [RotaClient(await world.newcomer()) for _ in range(AT_ONCE)]
        for each in clients:
            exits.push_async_callback(each.close)
        sides: dict[str, Client] = {"Rota": lambda number: clients[number].run()}
        model_url, database_url = world.scripted.url, await new_database(stack, "dbos")
        engines: dict[str, Engine] = {
            AHEAD_OF: lambda place: langgraph(place, model_url),
            "DBOS": lambda place: dbos(place, model_url, database_url),
        }
        for name, engine in engines.items():
            place = folder / name.replace(" ", "-")
            place.mkdir()
            try:
                found, client = await exits.enter_async_context(engine(place))
            except NotInstalled as error:
                print(
                    f"SKIPPED: {name} was NOT measured. It cannot be installed:\n{error}",
                    file=sys.stderr,
                )
                continue
            print(f"{name} {found}", flush=True)
            sides[name] = client
        for client in sides.values():
            await rate(client, WARM_UP_S)
        rates: dict[str, list[float]] = {name: [] for name in sides}
        names = list(sides)
        for number in range(rounds):
            # Each engine goes first in turn.
            at = number % len(names)
            for name in names[at:] + names[:at]:
                rates[name].append(await rate(sides[name], seconds))
    return rates


def report(rates: dict[str, list[float]]) -> bool:
    table = Table(title=f"Tasks of one model call over HTTP, {AT_ONCE} at once (medians)")
    for column in ("engine", "tasks/s", "Rota's ratio to it", "aim", ""):
        table.add_column(column, justify="left" if column in ("engine", "") else "right")
    ours = rates["Rota"]
    met = True
    for name, theirs in rates.items():
        cells = [name, f"{statistics.median(theirs):.1f}"]
        if name != "Rota":
            ratio = statistics.median(o / t for o, t in zip(ours, theirs, strict=True))
            cells.append(f"{ratio:.2f}")
        if name == AHEAD_OF:
            met = ratio >= 1
            cells += ["≥ 1.00", "met" if met else "missed"]
        table.add_row(*cells)
    Console(width=100).print(table)
    file = Path("bench-results") / "comparison.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(rates, indent=2) + "\n")
    return met


async def main(rounds: int, seconds: float) -> int:
    configure_logging("WARNING", "console")
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder:
        async with Stack(Path(data), components=PARTS) as stack:
            rates = await measure(stack, Path(folder), rounds, seconds)
    return 0 if report(rates) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8)
    o = parser.parse_args()
    raise SystemExit(asyncio.run(main(o.rounds, o.seconds)))
