"""Compares the capacity model with two loads that it was not fitted to: `make scale`.

    python -m tests.load.model_check --costs docs/scale/costs.json

tests/load/costs.py measures these loads (tests/load/points.py) in the same run as the costs,
because the processors of a virtual machine are not equally fast at all times. Processor time, bytes
of WAL, stored bytes and tasks per second must be within 20 % of what the model predicts.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.load.model import COSTS, PARTS, Cost, Model
from tests.load.points import POINTS

WITHIN = 0.2
# Parts with less of the processor time are not compared one by one: they have few ticks.
SMALL = 0.1


@dataclass(frozen=True)
class Row:
    point: str
    figure: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def met(self) -> bool:
        return abs(self.error) <= WITHIN


def compare(costs: dict[str, Any]) -> list[Row]:
    model, rows = Model(costs), []
    for point in POINTS:
        one, found = model.task(point.load), Cost.of(costs["checks"][point.name])
        total = found.total()
        rows.append(Row(point.name, "processor time, ms", one.total(), total))
        rows += [
            Row(point.name, f"processor time of {part}, ms", one.cpu_ms[part], found.cpu_ms[part])
            for part in PARTS
            if found.cpu_ms[part] >= SMALL * total
        ]
        for figure, name in (("WAL, bytes", "walBytes"), ("stored, bytes", "storedBytes")):
            rows.append(Row(point.name, figure, one.written[name], found.written[name]))
        measured = costs["checks"][point.name]["perSecond"]
        rows.append(Row(point.name, "tasks/s", model.throughput(point.load), measured))
    return rows


def report(rows: Sequence[Row]) -> None:
    table = Table(title="What the capacity model predicts for one task, and what was measured")
    for column in ("load", "figure", "predicted", "measured", "error", ""):
        table.add_column(column, justify="left" if column in ("load", "figure", "") else "right")
    for row in rows:
        table.add_row(
            row.point,
            row.figure,
            f"{row.predicted:,.1f}",
            f"{row.measured:,.1f}",
            f"{row.error * 100:+.0f} %",
            "met" if row.met else "MISSED",
        )
    Console(width=120).print(table)


def main(path: Path) -> int:
    costs = json.loads(path.read_text())
    if "checks" not in costs:
        print(f"{path} has no loads to compare with. Run: python -m tests.load.costs")
        return 2
    rows = compare(costs)
    report(rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=Path, default=COSTS)
    raise SystemExit(main(parser.parse_args().costs))
