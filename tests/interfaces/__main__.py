"""Runs every scenario through every interface of both variants.

    python -m tests.interfaces --write docs/interfaces.md

It exits with 1 if something is not the same. With `--write`, it writes the table into the page.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog

from rota.dev.stack import Stack
from tests.conftest import PARTS
from tests.interfaces import table
from tests.interfaces.runs import started
from tests.interfaces.scenarios import SCENARIOS
from tests.interfaces.work import INTERFACES
from tests.runs.scripted import Scripted
from tests.sdk.typescript.programs import close_all


async def run(variants: str, kinds: list[str], names: list[str]) -> dict[tuple[str, str], bool]:
    results = dict.fromkeys(((name, kind) for name in names for kind in kinds), True)
    with tempfile.TemporaryDirectory(prefix="rota-interfaces-") as data:
        async with (
            Stack(Path(data), components=PARTS, durable=False) as stack,
            Scripted.start() as scripted,
        ):
            for variant in variants:
                folder = Path(data) / f"interfaces-{variant}"
                folder.mkdir()
                async with started(stack, scripted, variant, folder) as runs:
                    for name in names:
                        problems = await runs.problems(name, kinds)
                        print(f"{variant} {name}: {', '.join(problems) or 'same'}", flush=True)
                        for kind, problem in problems.items():
                            print(f"{kind}\n{problem}\n", file=sys.stderr, flush=True)
                            results[name, kind] = False
    await close_all()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page to write the table into")
    parser.add_argument("--variants", default="ab")
    parser.add_argument("--interface", action="append", choices=list(INTERFACES))
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    chosen = parser.parse_args()
    kinds, names = chosen.interface or list(INTERFACES), chosen.scenario or list(SCENARIOS)
    # Not the requests of the service.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    begun = time.monotonic()
    results = asyncio.run(run(chosen.variants, kinds, names))
    failed = sum(not same for same in results.values())
    print(
        f"{len(names)} scenarios, {len(kinds)} interfaces, {len(chosen.variants)} variants: "
        f"{failed} differ, {time.monotonic() - begun:.0f} s"
    )
    if chosen.write:
        assert results.keys() == table.expected().keys(), "Run everything to write the table."
        table.write(results, chosen.write)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
