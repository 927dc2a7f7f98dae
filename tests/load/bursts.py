"""What the relay does for each instruction, with few and with very many of them waiting.

    python -m tests.load.bursts

It fills the outbox with 300 and with 300,000 due instructions of a thousand accounts, and measures
the time and PostgreSQL's processor time for each that a relay handles. With more waiting, one must
not take more than twice as long.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rota.composition import Composition
from rota.dev.stack import Stack
from rota.events.outbox import Instruction
from rota.events.relay import BATCH, Relay
from rota.platform.db import Database
from rota.platform.telemetry import configure_logging
from tests.events.relaying import fill
from tests.load.fleet import pid_of, write_json
from tests.load.meter import measure
from tests.service import Service

FEW, MANY = 300, 300_000
ACCOUNTS = 1_000
TARGET = 2.0
KIND = "burst.row"
RESULTS = Path("bench-results/bursts.json")


@dataclass(frozen=True)
class Burst:
    waiting: int
    # For each instruction, medians of the rounds.
    ms: float
    cpu_ms: float


async def nothing(_: Instruction) -> None:
    pass


async def round_of(service: Service, relay: Relay, rows: int) -> tuple[float, float]:
    """Milliseconds, and those of PostgreSQL's processor time, for each of so many instructions."""
    part = {"postgres": [pid_of(service.stack.postgres)]}
    before, began = measure(part)["postgres"], time.perf_counter()
    for _ in range(rows // BATCH):
        assert await relay.step()
    took = (time.perf_counter() - began) * 1000
    return took / rows, (measure(part)["postgres"].cpu_ms - before.cpu_ms) / rows


async def burst(service: Service, db: Database, waiting: int, rounds: int) -> Burst:
    relay = Relay(db, {KIND: nothing})
    times, cpu = [], []
    # The plan is made while nothing is due.
    await relay.step()
    if waiting > FEW:
        await fill(service, KIND, waiting, accounts=ACCOUNTS)
    for number in range(rounds + 1):
        if waiting <= FEW:
            await fill(service, KIND, FEW, accounts=ACCOUNTS)
        ms, cpu_ms = await round_of(service, relay, FEW)
        if number:
            times.append(ms)
            cpu.append(cpu_ms)
    async with service.owner() as connection:
        await connection.execute("TRUNCATE outbox")
    return Burst(waiting, statistics.median(times), statistics.mean(cpu))


def report(few: Burst, many: Burst) -> bool:
    ratio, cpu = many.ms / few.ms, many.cpu_ms / few.cpu_ms
    met = ratio <= TARGET and cpu <= TARGET
    table = Table(title="The relay's cost of one instruction")
    for column in ("waiting", "ms", "ms of PostgreSQL's processor time"):
        table.add_column(column, justify="right")
    for each in (few, many):
        table.add_row(f"{each.waiting:,}", f"{each.ms:.3f}", f"{each.cpu_ms:.3f}")
    table.add_row("ratio", f"{ratio:.2f}", f"{cpu:.2f}")
    console = Console(width=100)
    console.print(table)
    console.print(f"At most {TARGET:g}: {'met' if met else 'MISSED'}")
    write_json(RESULTS, [vars(few), vars(many)])
    return met


async def main(many: int, rounds: int) -> int:
    configure_logging("WARNING", "console")
    async with AsyncExitStack() as exits:
        data = exits.enter_context(tempfile.TemporaryDirectory())
        parts = ("postgres", "redis", "idp")
        stack = await exits.enter_async_context(Stack(Path(data), components=parts))
        service = Service.start(stack, variant="a", name="bursts")
        started = await exits.enter_async_context(service)
        composed = Composition(started.settings, pool_size=4)
        db = (await exits.enter_async_context(composed)).db
        few = await burst(started, db, FEW, rounds)
        met = report(few, await burst(started, db, many, rounds))
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=MANY)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.many, options.rounds)))
