"""Upgrades, rolls back and upgrades again, one process at a time, while people use the service.

    python -m tests.upgrade
    python -m tests.upgrade --before COMMIT --dwell-s 10

N-1 is the release before, in an environment of its own; N is this checkout. Two `rota serve` and
two workers run behind a load balancer. No request may fail twice, no task may be lost or fail, and
everything that is stored must be correct afterwards, for both releases.
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.chaos.world import PARTS, write_report
from tests.runs.runner import CATALOG
from tests.service import Person
from tests.upgrade import checks, features
from tests.upgrade.fleet import ORDER, Installation
from tests.upgrade.load import Load
from tests.upgrade.release import BEFORE, Release, is_known, release_before, this_release
from tests.webhooks.receiver import Receiver

PEOPLE = 4
AT_ONCE = 2
# Tasks that wait for a decision from one phase to the next.
WAITING = 4


@dataclass
class Upgrade:
    installation: Installation
    load: Load
    before: Release
    after: Release
    dwell_s: float
    receiver: Receiver
    figures: dict[str, Any] = field(default_factory=dict)
    # Each must be 0.
    wrong: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        began = time.monotonic()
        await asyncio.gather(*[self.installation.launch(name, self.before) for name in ORDER])
        self.load.people = [await self.installation.newcomer() for _ in range(PEOPLE)]
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.load.run(AT_ONCE, over))
            try:
                await self._sequence()
            finally:
                over.set()
        self._phase("end of the last tasks")
        await self.installation.until_terminal(deadline_s=300)
        self.figures["seconds"] = round(time.monotonic() - began)
        await self._check()

    async def _sequence(self) -> None:
        load = self.load
        await self._dwell("N-1")
        await self._migrate()
        await self._dwell("N-1, schema of N")
        await self._roll("to N", self.after)
        person = load.people[0]
        # Not one of the people whose requests must not fail.
        granted = await self.installation.newcomer()
        await features.use(load, person, self.receiver)
        await features.grant(self.installation, granted, self.after)
        await self._dwell("N")
        await self._roll("back to N-1", self.before)
        await self._walk(person, self.before)
        await self._walk(granted, self.before, features.NOT_READABLE)
        await self._dwell("N-1 again")
        await self._roll("to N again", self.after)
        await self._walk(person, self.after)
        await self._walk(granted, self.after)
        await self._dwell("N again")
        await load.leave_waiting(0)

    async def _walk(
        self, person: Person, release: Release, not_readable: Collection[str] = ()
    ) -> None:
        for path, problem in (await features.walk(person, release)).items():
            if path not in not_readable:
                self.load.wrong.append(f"GET {path}: {problem}")

    async def _migrate(self) -> None:
        """As the hook of the chart does: the schema, then the catalog."""
        self._phase("migration")
        began = time.monotonic()
        variables = self.installation.variables(None)
        await self.after.admin(variables, "migrate")
        self.figures["seconds of the migration"] = round(time.monotonic() - began, 1)
        await self.after.admin(variables, "agents", "sync", str(CATALOG), "--add-only")

    async def _roll(self, phase: str, release: Release) -> None:
        self._phase(phase)
        for name in ORDER:
            await self.installation.replace(name, release)
            await asyncio.sleep(self.dwell_s)

    async def _dwell(self, phase: str) -> None:
        self._phase(phase)
        await self.load.leave_waiting(WAITING)
        await asyncio.sleep(self.dwell_s)

    def _phase(self, name: str) -> None:
        self.load.phase = name
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)

    async def _check(self) -> None:
        self._phase("checks")
        load, installation = self.load, self.installation
        found = load.figures
        replaced = installation.replacements
        slowest = {phase: round(max(times), 2) for phase, times in found.seconds.items()}
        self.figures |= {
            "tasks": len(load.tasks),
            "tasks that a client saw end": dict(load.statuses),
            "requests": found.requests,
            "requests that failed once": sum(found.first_failures.values()),
            "requests that the second attempt healed": found.healed,
            "repeated creations": found.repeated_creations,
            "streams opened": found.streams,
            "events on streams": found.stream_events,
            "slowest request by phase, s": slowest,
            "replacements": len(replaced),
            "longest stop of serve, s": _longest(replaced, "serve", "stop_s"),
            "longest stop of a worker, s": _longest(replaced, "worker", "stop_s"),
            "longest start, s": round(max(each.start_s for each in replaced), 1),
        }
        self.wrong = {
            "requests that failed twice": len(found.failed),
            "other problems": len(load.wrong),
            **await checks.invariants(installation, load),
        }
        with tempfile.TemporaryDirectory() as folder:
            histories = Path(folder) / "histories"
            saved = await checks.save_histories(installation, (self.before, self.after), histories)
            self.figures["histories in Temporal"] = saved
            await asyncio.gather(
                *[self._check_as(release, histories) for release in (self.before, self.after)]
            )
        await self._check_webhook()

    async def _check_as(self, release: Release, histories: Path) -> None:
        self.wrong |= await checks.commands(self.installation, release)
        code, output = await checks.replay(release, histories)
        self.wrong[f"replay of histories, {release.name}"] = code
        self.figures[f"replay, {release.name}"] = output.strip().splitlines()[-1]
        if code:
            print(output)

    async def _check_webhook(self) -> None:
        """The webhook of N received every event, also those that happened under N-1, in order."""
        self._phase("webhook")
        [row] = await self.installation.query(
            "SELECT max(sequence) AS last FROM events WHERE account_id = $1",
            self.load.people[0].user_id,
        )
        with contextlib.suppress(TimeoutError):
            await self.receiver.until(
                lambda: self.receiver.sequences()[-1:] == [row["last"]], deadline_s=60
            )
        received = list(dict.fromkeys(self.receiver.sequences()))
        self.figures["events that the webhook received"] = len(received)
        missed = set(range(min(received, default=0), row["last"] + 1)) - set(received)
        self.wrong["events that the webhook missed"] = len(missed)
        self.wrong["events that the webhook got out of order"] = received != sorted(received)

    @property
    def holds(self) -> bool:
        return not any(self.wrong.values())


def _longest(replaced: list[Any], kind: str, what: str) -> float:
    longest: float = max(getattr(each, what) for each in replaced if each.name.startswith(kind))
    return round(longest, 1)


async def upgrade(stack: Stack, before: Release, dwell_s: float) -> Upgrade:
    async with AsyncExitStack() as opened:
        receiver = await opened.enter_async_context(Receiver().serving())
        installation = await opened.enter_async_context(
            Installation.prepare(stack, before, "upgrade", egress_allow=("127.0.0.0/8",))
        )
        variables = installation.variables(None)
        await before.admin(variables, "agents", "sync", str(CATALOG), "--add-only")
        after = this_release()
        found = Upgrade(installation, Load(installation), before, after, dwell_s, receiver)
        await found.run()
        return found


def report(found: Upgrade) -> None:
    table = Table(title="Upgrade, rollback and upgrade under load")
    table.add_column("figure")
    table.add_column("value", justify="right", overflow="fold")
    for name, value in found.figures.items():
        table.add_row(name, str(value))
    table.add_section()
    for name, count in found.wrong.items():
        table.add_row(name, str(count))
    Console(width=120).print(table)
    for problem, count in found.load.figures.first_failures.most_common(10):
        print(f"first attempt, {count} times: {problem}")
    for problem in [*found.load.figures.failed, *found.load.wrong][:20]:
        print(problem)
    write_report("upgrade", found.figures | {"violations": found.wrong})


async def main(commit: str, dwell_s: float, prepared: Path | None) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        if prepared is None:
            before = await asyncio.to_thread(release_before, Path(data) / "before", commit)
        else:
            python = prepared / "environment" / "bin" / "python"
            before = Release("N-1", prepared / "code", python)
        async with Stack(Path(data) / "stack", components=PARTS, durable=False) as stack:
            try:
                found = await upgrade(stack, before, dwell_s)
            except Exception as error:
                # While the logs still exist.
                print(error, flush=True)
                raise
    report(found)
    return 0 if found.holds else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="the commit of the release before")
    parser.add_argument("--dwell-s", type=float, default=5, help="pause after each replacement")
    parser.add_argument("--prepared", type=Path, help="a folder with `code` and `environment`")
    o = parser.parse_args()
    if o.prepared is None and not is_known(o.before):
        print(f"SKIPPED: this clone lacks the commit {o.before}. Upgrades were NOT tested.")
        print("Fetch it, for example with: git fetch --unshallow")
        raise SystemExit(0)
    raise SystemExit(asyncio.run(main(o.before, o.dwell_s, o.prepared)))
