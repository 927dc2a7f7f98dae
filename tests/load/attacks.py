"""`make attacks`: what one account can do to another.

    python -m tests.load.attacks [--seconds N] [--rounds N] [--only NAME …] [--variant a|b]

Each attack has a new service and a new worker. Another account sends requests all the time: alone
before and after the attack, and during it. Its p99 during the attack is at most 1.5 times its p99
alone, all of its requests succeed, and no process grows by more than 200 MB. Exits with 1 if one of
these is not true. Moments in which the machine itself was slow are left out: see stalls.py.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import psutil
import uvloop
from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform import collector
from rota.platform.telemetry import configure_logging
from tests.chaos.world import PARTS
from tests.load.attack_list import ATTACKS
from tests.load.attack_target import Attacked, MemoryWatch, attacked
from tests.load.attack_victim import Samples, Victim
from tests.load.attackers import Target
from tests.load.stalls import Stalls
from tests.runs.scripted import Scripted
from tests.tasks.world import newcomer

MAX_RATIO = 1.5
MAX_GROWTH_MB = 200
# More than this share of what was measured cannot be left out.
MAX_LEFT_OUT = 0.5
# If only a time is too long, the attack is repeated, and the times of all rounds count.
ROUNDS = 3


@dataclass
class Result:
    """What an attack did, over all its rounds."""

    got: Counter[str] = field(default_factory=Counter)
    alone: Samples = field(default_factory=dict)
    during: Samples = field(default_factory=dict)
    # Requests of the other account that did not succeed.
    failures: Counter[str] = field(default_factory=Counter)
    growth_mb: dict[str, float] = field(default_factory=dict)
    # Requests and runs of the other account, and those at moments when the machine was slow.
    measured: int = 0
    left_out: int = 0

    def ratio(self, kind: str) -> tuple[float, float]:
        """The median and the p99 during the attack, divided by those alone."""
        alone, during = self.alone[kind], self.during[kind]
        return median(during) / median(alone), p99(during) / p99(alone)

    @property
    def is_slow(self) -> bool:
        return any(self.ratio(kind)[1] > MAX_RATIO for kind in self.during)

    @property
    def problems(self) -> list[str]:
        found = ["slow"] if self.is_slow else []
        found += [f"{kind} not measured" for kind in self.alone.keys() - self.during.keys()]
        if self.left_out > MAX_LEFT_OUT * self.measured:
            found.append("too much left out")
        found += [f"{count} × {what}" for what, count in self.failures.items()]
        found += [f"{name} grew" for name, mb in self.growth_mb.items() if mb > MAX_GROWTH_MB]
        return found

    @property
    def summary(self) -> str:
        times = [f"{kind} p99 {self.ratio(kind)[1]:.2f}" for kind in self.during]
        left_out = f"{self.left_out / max(self.measured, 1):.0%} left out"
        return f"{', '.join(self.problems) or 'passed'} ({', '.join(times)}, {left_out})"


def p99(samples: Sequence[float]) -> float:
    return quantiles(samples, n=100)[98]


# Measurement


@asynccontextmanager
async def attacker(name: str, target: Target) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.load.attack_list",
        name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(target.line())
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def tell(process: asyncio.subprocess.Process, word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n".encode())
    await process.stdin.drain()


async def told(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(300):
        line = await process.stdout.readline()
    assert line, "the attacker has failed"
    return line.decode().strip()


async def settled(deadline_s: float = 10) -> bool:
    """Whether the machine becomes idle within this time."""
    psutil.cpu_percent()
    loop = asyncio.get_running_loop()
    ends = loop.time() + deadline_s
    while loop.time() < ends:
        await asyncio.sleep(0.5)
        if psutil.cpu_percent() < 15:
            return True
    return False


async def measure(
    target: Attacked, name: str, tools_url: str, seconds: float, into: Result, stalls: Stalls
) -> None:
    """One round of an attack."""
    service = target.service
    beside = ATTACKS[name].beside
    victim = await Victim.of(service, target.scripted, tools_url, beside, stalls)
    account = await newcomer(service)
    admin = service.stack.endpoints.admin_database_url
    assert admin is not None
    start = Target(
        port=service.settings.port,
        token=account.token,
        account=str(account.user_id),
        owner_url=admin.rpartition("/")[0] + "/" + service.database_url.rpartition("/")[2],
        model_url=target.scripted.url,
        issuer_url=service.stack.endpoints.issuer_url,
    )
    async with attacker(name, start) as process:
        await victim.warm_up()
        assert await told(process) == "ready"
        await settled()
        await victim.measure(seconds / 2, into.alone, into.failures)
        memory = MemoryWatch(target)
        watching = asyncio.create_task(memory.watch())
        await tell(process, "go")
        await victim.measure(seconds, into.during, into.failures)
        await tell(process, "stop")
        into.got += Counter(json.loads(await told(process)))
    if await settled():
        await victim.measure(seconds / 2, into.alone, into.failures)
    into.measured += victim.measured
    into.left_out += victim.left_out
    watching.cancel()
    for kind, mb in memory.growth_mb().items():
        into.growth_mb[kind] = max(mb, into.growth_mb.get(kind, 0.0))


@dataclass(frozen=True)
class Setup:
    """Everything that all attacks share."""

    stack: Stack
    scripted: Scripted
    tools_url: str
    variant: str
    stalls: Stalls

    @classmethod
    @asynccontextmanager
    async def start(cls, stack: Stack, variant: str) -> AsyncIterator["Setup"]:
        peers = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.load.attack_peers", stdout=asyncio.subprocess.PIPE
        )
        try:
            addresses = json.loads(await told(peers))
            os.environ["TEST_NAME_SERVER"] = addresses["names"]
            async with Scripted.start() as scripted, Stalls.watched() as stalls:
                yield cls(stack, scripted, addresses["tools"], variant, stalls)
        finally:
            peers.kill()
            await peers.wait()

    async def run(self, name: str, seconds: float, rounds: int) -> Result:
        result = Result()
        for _ in range(rounds):
            async with attacked(self.stack, self.variant, self.scripted) as target:
                await measure(target, name, self.tools_url, seconds, result, self.stalls)
            if result.problems != ["slow"]:
                break
        return result


# Report


def report(results: dict[str, Result], variant: str) -> None:
    table = Table(title=f"Variant {variant.upper()}: another account, during the attack ÷ alone")
    for column in ("attack", "the attacker got", "measured", "median", "p99", "MB", "problems"):
        table.add_column(column, justify="right" if column in ("median", "p99") else "left")
    for name, result in results.items():
        got = ", ".join(f"{what}: {count}" for what, count in result.got.most_common(6))
        growth = ", ".join(f"{what} {mb:+.0f}" for what, mb in result.growth_mb.items())
        ratios = {kind: result.ratio(kind) for kind in result.during}
        table.add_row(
            name,
            got,
            "\n".join(f"{kind} ({len(result.during[kind])})" for kind in ratios),
            "\n".join(f"{middle:.2f}" for middle, _ in ratios.values()),
            "\n".join(f"{last:.2f}" for _, last in ratios.values()),
            growth,
            "\n".join(result.problems),
        )
    Console(width=150).print(table)
    (file := Path("bench-results/attacks.json")).parent.mkdir(exist_ok=True)
    figures = {
        name: {
            "got": result.got,
            "ratios": {kind: result.ratio(kind) for kind in result.during},
            "p99AloneMs": {kind: p99(times) * 1000 for kind, times in result.alone.items()},
            "growthMb": result.growth_mb,
            "leftOut": result.left_out / max(result.measured, 1),
            "problems": result.problems,
        }
        for name, result in results.items()
    }
    file.write_text(json.dumps(figures, indent=2) + "\n")


async def main(seconds: float, rounds: int, only: Sequence[str], variant: str) -> int:
    configure_logging("WARNING", "console")
    collector.settle()
    names = [name for name in ATTACKS if not only or any(part in name for part in only)]
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="rota") as data:
        async with (
            Stack(Path(data), components=PARTS, durable=False) as stack,
            Setup.start(stack, variant) as setup,
        ):
            for name in names:
                results[name] = await setup.run(name, seconds, rounds)
                print(f"{name}: {results[name].summary}", flush=True)
    report(results, variant)
    return 1 if any(result.problems for result in results.values()) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=7)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--only", nargs="*", default=[], help="only attacks whose names contain one of these"
    )
    parser.add_argument("--variant", choices=["a", "b"], default="a")
    options = parser.parse_args()
    sys.exit(uvloop.run(main(options.seconds, options.rounds, options.only, options.variant)))
