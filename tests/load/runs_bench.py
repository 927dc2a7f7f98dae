"""Compares runs with a bare Temporal workflow that makes the same calls on the same machine.

    python -m tests.load.runs_bench

A task calls an instant model, then two tools, then the model again. The bare workflow has no
database: it has one local activity and four ordinary ones, which make the same HTTP requests. Both
use one worker with the same settings on the same Temporal server, in turns. Then single tasks show
what each further model call of a run takes beside the call itself, made with the same client
library.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.model_choice import ModelChoice, read_chains
from rota.platform.telemetry import configure_logging
from rota.runs.models import Models
from tests.chaos.world import PARTS, World
from tests.load.runs_bare import QUEUE, Bare, BareInput
from tests.runs.scripted import calls, says
from tests.service import Person

RATIO_AIM = 1.1
FURTHER_CALL_AIM_MS = 8.0
ACCOUNTS = 16
AT_ONCE = 16
# Single tasks, and the model calls after the first one in the longer of them. A slice makes them
# all.
SINGLE = 15
FURTHER_CALLS = 10


@dataclass
class Figures:
    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    # The time of one HTTP request to the model, and of the same through the client library.
    call_ms: float = 0
    client_call_ms: float = 0
    # When only one run is in progress: a further model call of a run, and a step on average.
    further_call_ms: float = 0
    our_step_ms: float = 0
    bare_step_ms: float = 0

    @property
    def ratio(self) -> float:
        return statistics.median(o / b for o, b in zip(self.ours, self.bare, strict=True))

    @property
    def added_ms(self) -> float:
        """What a further model call of a run takes beside the call itself."""
        return self.further_call_ms - self.client_call_ms

    @property
    def met(self) -> bool:
        return self.ratio >= RATIO_AIM and self.added_ms <= FURTHER_CALL_AIM_MS


@asynccontextmanager
async def bare_worker(world: World) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.load.runs_bare",
        env=os.environ | dict(world.variables(None)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(120):
            await process.stdout.readline()
        yield
    finally:
        process.terminate()
        await process.wait()


async def of_ours(world: World, script: str, count: int) -> float:
    """Tasks per second, from the first request to the end of the last task."""
    people = [await world.newcomer() for _ in range(ACCOUNTS)]
    accounts = [person.user_id for person in people]
    began = time.monotonic()
    turn = asyncio.Semaphore(AT_ONCE)

    async def create(number: int) -> None:
        async with turn:
            await world.create(people[number % ACCOUNTS], "writer", script)

    await asyncio.gather(*map(create, range(count)))
    # One connection and one small query, so that polling does not distort the measurement.
    async with asyncio.timeout(300), world.service.owner() as connection:
        while count > await connection.fetchval(
            "SELECT sum(completed) FROM account_heads WHERE account_id = ANY($1)", accounts
        ):
            await asyncio.sleep(0.1)
    return count / (time.monotonic() - began)


async def of_bare(client: Client, world: World, prefix: str, count: int) -> float:
    bare_input = BareInput(world.scripted.url, prefix)
    turn = asyncio.Semaphore(AT_ONCE)
    began = time.monotonic()

    async def run(number: int) -> None:
        async with turn:
            handle = await client.start_workflow(
                Bare.run, bare_input, id=f"bare-{prefix}-{number}", task_queue=QUEUE
            )
        await handle.result()

    await asyncio.gather(*map(run, range(count)))
    return count / (time.monotonic() - began)


async def measure(stack: Stack, rounds: int, count: int) -> Figures:
    figures = Figures()
    async with World.start(
        stack, "runs_bench", workers=1, run_heartbeat_s=15.0, database_pool_size=10
    ) as world:
        script = await world.scripted.script(
            calls(("desk__lookup", {"ref": "bench"}), ("desk__lookup", {"ref": "bench"})),
            says("Done."),
        )
        client = await world.temporal()
        async with bare_worker(world):
            await of_ours(world, script, 10)
            await of_bare(client, world, "warm", 10)
            for number in range(rounds):
                for side in ("ours", "bare") if number % 2 else ("bare", "ours"):
                    if side == "ours":
                        figures.ours.append(await of_ours(world, script, count))
                    else:
                        figures.bare.append(await of_bare(client, world, f"r{number}", count))
            await _alone(figures, world, script, client)
    return figures


async def _alone(figures: Figures, world: World, script: str, client: Client) -> None:
    """The cost of a step when only one run is in progress."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Hello"}]}
    names = ("call", "client call", "ours", "bare", "one", "many")
    taken: dict[str, list[float]] = {name: [] for name in names}
    one = await world.scripted.script(says("Done."))
    # Rota answers a call to an unknown tool itself, so the next model call follows at once.
    again = calls(("absent", {}))
    many = await world.scripted.script(*[again] * FURTHER_CALLS, says("Done."))
    person = await world.newcomer()
    choices = read_chains(json.loads(world.scripted.models()))
    models = TypeAdapter(dict[str, ModelChoice]).validate_python(choices)
    chosen = Models(models, None).chain("default").choose()
    hello: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hello")])]
    for number in range(SINGLE):
        began = time.monotonic()
        await world.scripted.http.post("/v1/chat/completions", json=body)
        taken["call"].append(time.monotonic() - began)
        began = time.monotonic()
        await chosen.model.request(hello, chosen.settings, ModelRequestParameters())
        taken["client call"].append(time.monotonic() - began)
        began = time.monotonic()
        await of_bare(client, world, f"alone-{number}", 1)
        taken["bare"].append(time.monotonic() - began)
        for name, each in (("ours", script), ("one", one), ("many", many)):
            taken[name].append(await run_s(world, person, each))
    middle_ms = {name: statistics.median(values) * 1000 for name, values in taken.items()}
    figures.call_ms, figures.client_call_ms = middle_ms["call"], middle_ms["client call"]
    # Three steps in sequence: model, both tools, model.
    figures.bare_step_ms = middle_ms["bare"] / 3
    figures.our_step_ms = middle_ms["ours"] / 3
    figures.further_call_ms = (middle_ms["many"] - middle_ms["one"]) / FURTHER_CALLS


async def run_s(world: World, person: Person, script: str, since: str = "started_at") -> float:
    """How long one run takes, by default without its time in the queue."""
    async with asyncio.timeout(60), world.service.owner() as connection:
        task_id = await world.create(person, "writer", script)
        while True:
            # Rare, so that polling does not slow the run down.
            await asyncio.sleep(0.1)
            seconds: float | None = await connection.fetchval(
                f"SELECT extract(epoch FROM finished_at - {since})::float FROM tasks "
                "WHERE id = $1 AND status = 'COMPLETED'",
                ids.from_wire("task", task_id),
            )
            if seconds is not None:
                return seconds


def report(figures: Figures) -> None:
    table = Table(title="Runs with 2 model and 2 tool calls, and a bare workflow (medians)")
    for column in ("figure", "Rota", "bare", "ratio", "aim", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    table.add_row(
        "runs, end to end (tasks/s)",
        f"{statistics.median(figures.ours):.1f}",
        f"{statistics.median(figures.bare):.1f}",
        f"{figures.ratio:.2f}",
        f"≥ {RATIO_AIM:.2f}",
        "met" if figures.ratio >= RATIO_AIM else "missed",
    )
    table.add_row(
        f"a step adds to a call of {figures.call_ms:.1f} ms (ms)",
        f"{figures.our_step_ms - figures.call_ms:.1f}",
        f"{figures.bare_step_ms - figures.call_ms:.1f}",
    )
    table.add_row(
        f"a further model call adds to one of {figures.client_call_ms:.1f} ms (ms)",
        f"{figures.added_ms:.1f}",
        "",
        "",
        f"≤ {FURTHER_CALL_AIM_MS:g}",
        "met" if figures.added_ms <= FURTHER_CALL_AIM_MS else "missed",
    )
    Console(width=100).print(table)
    file = Path("bench-results") / "runs.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(vars(figures) | {"ratio": figures.ratio}, indent=2) + "\n")


async def main(rounds: int, count: int) -> int:
    configure_logging("WARNING", "console")
    # Listing tools is not part of a run: the tools of tool servers come from the database.
    os.environ["TEST_TOOLS_FIXED"] = "yes"
    with tempfile.TemporaryDirectory() as data:
        async with Stack(Path(data), components=PARTS) as stack:
            figures = await measure(stack, rounds, count)
    report(figures)
    return 0 if figures.met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=150)
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.rounds, options.tasks)))
