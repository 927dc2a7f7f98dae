"""Predicts what a load needs from what one operation costs: the capacity model.

    python -m tests.load.model --tasks-per-s 100 --model-calls 3 --tool-calls 4 --keep-days 90

The only input is docs/scale/costs.json, which tests/load/costs.py measures. It also measures two
loads that the model does not use. tests/load/model_check.py compares its predictions with them.
"""

import argparse
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

COSTS = Path("docs/scale/costs.json")
PARTS = ("serve", "worker", "postgres", "redis", "temporal")
BENCHMARK = "benchmark"
WRITTEN = ("walBytes", "storedBytes", "transactionIds", "redisCommands", "temporalBytes")
WHOLE_TASKS = (
    "task",
    "task with 10 further model calls",
    "task with 8 tool calls",
    "approved task",
)
# A process of Python uses one processor. This share of it leaves room for peaks.
FULL = 0.7
POOL = 10
RUNS_PER_WORKER = 50
DAY_S = 86_400
# PostgreSQL begins to freeze a table when it has seen this many transaction IDs.
FREEZE_AGE = 200_000_000


@dataclass(frozen=True)
class Cost:
    """Processor time in milliseconds by part, and what is written."""

    cpu_ms: Mapping[str, float]
    written: Mapping[str, float]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Cost":
        return cls(dict(found["cpuMs"]), {name: found[name] for name in WRITTEN})

    def times(self, factor: float) -> "Cost":
        return Cost(
            {part: value * factor for part, value in self.cpu_ms.items()},
            {name: value * factor for name, value in self.written.items()},
        )

    def total(self, parts: Iterable[str] = PARTS) -> float:
        return sum(self.cpu_ms[part] for part in parts)


def add(costs: Iterable[Cost]) -> Cost:
    cpu: dict[str, float] = dict.fromkeys((*PARTS, BENCHMARK), 0.0)
    written: dict[str, float] = dict.fromkeys(WRITTEN, 0.0)
    for cost in costs:
        for part, value in cost.cpu_ms.items():
            cpu[part] += value
        for name, value in cost.written.items():
            written[name] += value
    return Cost(cpu, written)


@dataclass(frozen=True)
class Load:
    """A task of the load, with the requests that come with it."""

    tasks_per_s: float = 1
    model_calls: float = 1
    tool_calls: float = 0
    # The share of tasks that a person approves.
    approvals: float = 0
    # Requests for each task: me, fetch, list, and create for tasks that no agent of Rota runs.
    requests: Mapping[str, float] = field(default_factory=dict)
    # How long a run takes, mostly in the model.
    run_s: float = 10


@dataclass(frozen=True)
class Prediction:
    load: Load
    one: Cost
    cores: dict[str, float]
    serves: int
    workers: int
    wal_mb_per_s: float
    stored_gb_per_day: float
    temporal_gb_per_day: float
    hours_to_freeze: float
    history_events_per_s: float

    @property
    def connections(self) -> int:
        return (self.serves + self.workers) * POOL


class Model:
    def __init__(self, costs: Mapping[str, Any]) -> None:
        self.operations = {name: Cost.of(each) for name, each in costs["operations"].items()}
        self.idle = costs["idle"]["cpuMsPerSecond"]
        self.history_events: int = costs["historyEvents"]
        self._processors: int = costs["machine"]["processors"]
        # How busy the busiest of them was while whole tasks were measured.
        self._busy: float = statistics.median(
            each["perSecond"] * self._busiest_ms(self.operations[name]) / 1000
            for name, each in costs["operations"].items()
            if name in WHOLE_TASKS
        )

    @classmethod
    def load(cls, path: Path = COSTS) -> "Model":
        return cls(json.loads(path.read_text()))

    def task(self, load: Load) -> Cost:
        """One task of the load."""
        op = self.operations
        approval = add([op["approved task"], op["task"].times(-1)])
        return add(
            [
                op["task"],
                op["further model call"].times(load.model_calls - 1),
                op["tool call"].times(load.tool_calls),
                approval.times(load.approvals),
                *(op[name].times(count) for name, count in load.requests.items()),
            ]
        )

    def throughput(self, load: Load) -> float:
        """Tasks per second of one `serve` and one `worker` on the measured machine.

        The machine runs the other parts and the benchmark, too.
        """
        return self._busy * 1000 / self._busiest_ms(self.task(load))

    def _busiest_ms(self, cost: Cost) -> float:
        """What limits the rate: all processors together, or one process of Python."""
        whole = cost.total((*PARTS, BENCHMARK)) / self._processors
        return max(whole, cost.cpu_ms["serve"], cost.cpu_ms["worker"])

    def predict(self, load: Load) -> Prediction:
        one, rate = self.task(load), load.tasks_per_s
        cores = {part: one.cpu_ms[part] * rate / 1000 for part in PARTS}
        serves = max(1, math.ceil(cores["serve"] / FULL))
        # A worker is full of processor time, or of runs that wait for their models.
        by_runs = rate * load.run_s / RUNS_PER_WORKER
        workers = max(1, math.ceil(cores["worker"] / FULL), math.ceil(by_runs))
        cores["serve"] += serves * self.idle["serve"] / 1000
        cores["worker"] += workers * self.idle["worker"] / 1000
        ids_per_s = one.written["transactionIds"] * rate
        return Prediction(
            load,
            one,
            cores,
            serves,
            workers,
            wal_mb_per_s=one.written["walBytes"] * rate / 1e6,
            stored_gb_per_day=one.written["storedBytes"] * rate * DAY_S / 1e9,
            temporal_gb_per_day=one.written["temporalBytes"] * rate * DAY_S / 1e9,
            hours_to_freeze=FREEZE_AGE / ids_per_s / 3600,
            history_events_per_s=self.history_events * rate,
        )


@dataclass(frozen=True)
class Limit:
    """Something that has to change when a load passes a bound."""

    name: str
    # Of the bound, at this load.
    share: float
    change: str


# The bounds are the defaults of the servers, or what one machine of 32 processors has.
REDIS_CORES, POSTGRES_CORES = 0.7, 32 * 0.7
CONNECTIONS = 90
WAL_MB_PER_S = 200
CLOUD_ACTIONS, ACTIONS_PER_TASK = 500, 3
FRONTEND_RPS, CALLS_PER_TASK = 2_400, 7
STORED_TB = 4


def limits(found: Prediction, keep_days: float = 90) -> list[Limit]:
    """The bounds that this load is nearest to, first those that it passes by most."""
    rate = found.load.tasks_per_s
    stored_tb = found.stored_gb_per_day * keep_days / 1000
    all_of_them = [
        Limit(
            "connections of PostgreSQL (100 by default)",
            found.connections / CONNECTIONS,
            "PgBouncer in transaction mode",
        ),
        Limit(
            "one Redis (one processor)",
            found.cores["redis"] / REDIS_CORES,
            "a cell with its own Redis",
        ),
        Limit(
            "one PostgreSQL (32 processors)",
            found.cores["postgres"] / POSTGRES_CORES,
            "more processors, then another cell",
        ),
        Limit(
            "WAL of one PostgreSQL (200 MB/s)",
            found.wal_mb_per_s / WAL_MB_PER_S,
            "wal_compression, a faster disk, then another cell",
        ),
        Limit(
            "a freeze of every table in a day",
            24 / found.hours_to_freeze,
            "autovacuum_freeze_max_age = 1 billion, autovacuum_max_workers = 10",
        ),
        Limit(
            "Temporal Cloud (500 actions/s by default)",
            rate * ACTIONS_PER_TASK / CLOUD_ACTIONS,
            "ask for a higher limit of the namespace",
        ),
        Limit(
            "one frontend of Temporal (2,400 requests/s)",
            rate * CALLS_PER_TASK / FRONTEND_RPS,
            "more frontends, frontend.namespaceRPS",
        ),
        Limit(
            f"{STORED_TB} TB on one PostgreSQL",
            stored_tb / STORED_TB,
            "ROTA_RETENTION_DAYS, larger disks, then another cell",
        ),
    ]
    return sorted(all_of_them, key=lambda limit: -limit.share)


# The loads of docs/scale.md: short tasks of which people look at the results.
RATES = (10, 100, 1_000)
REQUESTS = {"me": 1.0, "fetch": 2.0, "list": 1.0}
BILLION = 1_000_000_000


def documented(model: Model) -> list[str]:
    """The rows of the tables of docs/scale.md, which a test compares with the page."""
    rows = []
    for name, cost in model.operations.items():
        written = cost.written
        cells = [f"{cost.cpu_ms[part]:.2f}" for part in PARTS]
        cells += [f"{cost.total():.1f}", f"{written['walBytes'] / 1000:.1f}"]
        cells += [f"{written['storedBytes'] / 1000:.1f}", f"{written['transactionIds']:.1f}"]
        rows.append(_row(name, *cells))
    found = [model.predict(Load(rate, requests=REQUESTS)) for rate in RATES]
    rows += [
        *(
            _row(f"processors of {part}", *[f"{each.cores[part]:.2f}" for each in found])
            for part in PARTS
        ),
        _row("`serve` processes", *[f"{each.serves}" for each in found]),
        _row("`worker` processes, for runs of 10 s", *[f"{each.workers}" for each in found]),
        _row("connections", *[f"{each.connections:,}" for each in found]),
        _row("WAL, MB/s", *[f"{each.wal_mb_per_s:.1f}" for each in found]),
        _row("rows and indexes, GB a day", *[f"{each.stored_gb_per_day:,.0f}" for each in found]),
        _row("hours until a freeze", *[f"{each.hours_to_freeze:,.0f}" for each in found]),
        _row("history events/s", *[f"{each.history_events_per_s:,.0f}" for each in found]),
    ]
    passed = [{limit.name: limit for limit in limits(each)} for each in found]
    for limit in limits(found[-1]):
        shares = [f"{each[limit.name].share * 100:,.0f} %" for each in passed]
        rows.append(_row(limit.name, *shares, limit.change))
    stored = found[0].one.written["storedBytes"] * BILLION / 1e12
    rows.append(_row("a billion tasks, TB of rows and indexes", f"{stored:.1f}"))
    return rows


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def report(found: Prediction, keep_days: float) -> None:
    console = Console(width=110)
    load = found.load
    table = Table(title=f"{load.tasks_per_s:g} tasks/s")
    for column in ("part", "ms per task", "processors"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for part in PARTS:
        table.add_row(part, f"{found.one.cpu_ms[part]:.2f}", f"{found.cores[part]:.2f}")
    console.print(table)
    kept = found.stored_gb_per_day * keep_days
    console.print(
        f"{found.serves} serve and {found.workers} worker processes, {found.connections} database "
        f"connections\nWAL {found.wal_mb_per_s:.2f} MB/s; {found.stored_gb_per_day:.1f} GB of rows "
        f"and indexes a day, {kept:,.0f} GB in {keep_days:g} days\n"
        f"{found.hours_to_freeze:.1f} h until PostgreSQL freezes; "
        f"{found.history_events_per_s:,.0f} history events/s in Temporal"
    )
    for limit in limits(found, keep_days):
        state = "EXCEEDED" if limit.share > 1 else "        "
        console.print(f"{state} {limit.share:8.0%}  {limit.name}: {limit.change}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=Path, default=COSTS)
    parser.add_argument("--tasks-per-s", type=float, default=10)
    parser.add_argument("--model-calls", type=float, default=1)
    parser.add_argument("--tool-calls", type=float, default=0)
    parser.add_argument("--approvals", type=float, default=0, help="a share of the tasks")
    parser.add_argument("--run-s", type=float, default=10, help="how long a run takes")
    parser.add_argument("--keep-days", type=float, default=90)
    for request in ("me", "fetch", "list", "create"):
        parser.add_argument(f"--{request}", type=float, default=0, help="requests for each task")
    parser.add_argument("--tables", action="store_true", help="print the rows of docs/scale.md")
    options = parser.parse_args()
    if options.tables:
        print("\n".join(documented(Model.load(options.costs))))
        raise SystemExit
    given = Load(
        options.tasks_per_s,
        options.model_calls,
        options.tool_calls,
        options.approvals,
        {name: getattr(options, name) for name in ("me", "fetch", "list", "create")},
        options.run_s,
    )
    report(Model.load(options.costs).predict(given), options.keep_days)
