"""Measures webhooks: good endpoints beside slow, failing, dead and hostile ones, while workers die.

    python -m tests.load.webhooks_bench [--events 2000] [--rate 10] [--kills 6] [--workers 2]

One account has 50 webhooks: 20 are good, 10 slow, 10 fail at random, 5 are dead, and 5 redirect,
talk nonsense or hang. Events are committed at a steady rate, and workers are killed and replaced
meanwhile. Prints the time from a commit to its receipt for the good ones. Exits with 1 if a good
endpoint misses an event, any endpoint gets one out of order, or the p99 with all kills is above
its limit.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from rota.composition import Composition
from rota.dev.stack import Stack
from rota.events import journal
from rota.platform.settings import Settings
from rota.webhooks.model import HOLD_S
from tests.service import Person, Service, environment
from tests.webhooks.receiver import OK, Received, Receiver, hang, response
from tests.webhooks.world import LOCAL, create

MAX_P99_S = 2.0
TIMEOUT_S = 3.0
DEADLINE_S = 300.0
# For how long after a kill times are not counted as undisturbed.
DISTURBED_S = HOLD_S + 5


async def work() -> None:
    """A worker that does nothing but send webhooks."""
    async with Composition(Settings(), pool_size=8) as parts:
        await parts.webhook_dispatcher.run()


class Workers:
    def __init__(self, settings: Settings) -> None:
        self._environment = os.environ | environment(settings)
        self._running: list[asyncio.subprocess.Process] = []
        self.killed_at: list[float] = []

    async def add(self) -> None:
        arguments = ("-m", "tests.load.webhooks_bench", "--worker")
        self._running.append(
            await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                env=self._environment,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        )

    async def kill_one(self) -> None:
        process = self._running.pop(0)
        process.kill()
        await process.wait()
        self.killed_at.append(time.monotonic())
        await self.add()

    async def stop(self) -> None:
        for process in self._running:
            process.kill()
            await process.wait()


def answers_of(receiver: Receiver) -> dict[str, list[str]]:
    """The kinds of endpoints, each with its paths. Sets what they answer."""

    async def slowly(_: Received) -> bytes:
        await asyncio.sleep(0.5)
        return OK

    def fails_at_random(_: Received) -> bytes:
        return response(500) if random.random() < 0.02 else OK

    kinds = {
        "good": [f"/good{n}" for n in range(20)],
        "slow": [f"/slow{n}" for n in range(10)],
        "random": [f"/random{n}" for n in range(10)],
    }
    receiver.answers |= dict.fromkeys(kinds["slow"], slowly)
    receiver.answers |= dict.fromkeys(kinds["random"], fails_at_random)
    receiver.answers |= {
        "/redirect": lambda _: response(307, "Location: /good0"),
        "/nonsense": lambda _: b"SSH-2.0-OpenSSH\r\n\r\n",
        "/hang": hang,
        "/empty": lambda _: b"",
    }
    return kinds


@asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """An address that accepts connections and never answers, not even for TLS."""
    never = asyncio.Event()

    async def never_answer(*_: object) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await never.wait()

    server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


async def commit_events(
    parts: Composition, person: Person, workers: Workers, events: int, rate: float, kills: int
) -> dict[int, float]:
    """When each event was committed, by its number."""
    committed: dict[int, float] = {}
    kill_at = {round(events * (n + 1) / (kills + 1)) for n in range(kills)}
    started = time.monotonic()
    for number in range(events):
        await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
        async with parts.db.write(person.user_id) as tx:
            await journal.append(tx, "task.updated", {"number": number})
            sequence = await journal.last_sequence(tx)
        committed[sequence] = time.monotonic()
        if number in kill_at:
            await workers.kill_one()
    return committed


def out_of_order(sequences: list[int]) -> bool:
    """Whether a number arrives before the one before it."""
    highest: int | None = None
    for sequence in sequences:
        if highest is not None and sequence > highest + 1:
            return True
        highest = max(highest or 0, sequence)
    return False


async def measure(service: Service, options: argparse.Namespace) -> int:
    person = await service.sign_in()
    workers = Workers(service.settings)
    async with (
        Receiver().serving() as receiver,
        silent() as tls,
        Composition(service.settings, pool_size=4) as parts,
    ):
        kinds = answers_of(receiver)
        urls = [receiver.url + path for paths in kinds.values() for path in paths]
        urls += [receiver.url + path for path in ("/redirect", "/nonsense", "/hang", "/empty")]
        urls += [tls, *(f"http://127.0.0.1:{port}/" for port in range(2, 7))]
        for url in urls:
            await create(person, url)
        for _ in range(options.workers):
            await workers.add()
        try:
            await receiver.until(lambda: len({each.path for each in receiver.received}) >= 40, 60)
            committed = await commit_events(
                parts, person, workers, options.events, options.rate, options.kills
            )
            complete = {"good": 0, "random": 0, "slow": 0}
            deadline = time.monotonic() + (DEADLINE_S if options.events > 500 else 60)
            while time.monotonic() < deadline:
                seen = {path: receiver.sequences(path) for kind in kinds.values() for path in kind}
                for kind in complete:
                    complete[kind] = sum(set(committed) <= set(seen[path]) for path in kinds[kind])
                if complete["good"] == 20 and complete["random"] == 10:
                    break
                await asyncio.sleep(1)
        finally:
            await workers.stop()
        return report(receiver, kinds, committed, complete, workers)


def report(
    receiver: Receiver,
    kinds: dict[str, list[str]],
    committed: dict[int, float],
    complete: dict[str, int],
    workers: Workers,
) -> int:
    delays: list[float] = []
    undisturbed: list[float] = []
    for path in kinds["good"]:
        seen: set[int] = set()
        for each in receiver.at(path):
            sequence = each.event["sequence"]
            if sequence in seen or sequence not in committed:
                continue
            seen.add(sequence)
            at = committed[sequence]
            delays.append(each.at - at)
            # After a kill, webhooks wait until the dead worker is missed, and then catch up.
            if all(not -2 <= at - killed <= DISTURBED_S for killed in workers.killed_at):
                undisturbed.append(each.at - at)
    disordered = [
        path for paths in kinds.values() for path in paths if out_of_order(receiver.sequences(path))
    ]
    repeated = sum(
        len(receiver.at(path)) - len(set(receiver.sequences(path))) for path in kinds["good"]
    )
    table = Table("measure", "value", title=f"{len(committed)} events to 50 webhooks")
    for name, found in (("all", delays), ("without kills", undisturbed)):
        if len(found) > 100:
            p99 = quantiles(found, n=100)[98]
            table.add_row(
                f"commit to receipt at good endpoints, {name}",
                f"median {median(found) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms",
            )
    table.add_row("good endpoints that have everything", f"{complete['good']} of 20")
    table.add_row("endpoints with random failures that have everything", f"{complete['random']}/10")
    table.add_row("slow endpoints that have everything so far", f"{complete['slow']} of 10")
    table.add_row("events that good endpoints got twice", str(repeated))
    table.add_row("endpoints with events out of order", str(len(disordered)))
    table.add_row("workers killed", str(len(workers.killed_at)))
    Console(width=110).print(table)
    slow = quantiles(delays, n=100)[98] > MAX_P99_S
    return int(bool(disordered) or complete["good"] < 20 or slow)


async def main(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="rota") as data:
        components = ("postgres", "redis", "idp")
        async with (
            Stack(Path(data), components=components, durable=False) as stack,
            Service.start(
                stack,
                variant="a",
                name="webhooks_bench",
                egress_allow=LOCAL,
                webhook_timeout_s=TIMEOUT_S,
            ) as service,
        ):
            return await measure(service, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        asyncio.run(work())
    else:
        sys.exit(asyncio.run(main(given)))
