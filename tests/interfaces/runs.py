"""Runs scenarios through interfaces, and says what came out of each."""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from rota.dev.stack import Stack
from tests.interfaces.scenarios import SCENARIOS, Scenario
from tests.interfaces.work import INTERFACES, Work
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.service import PLENTY

Json = dict[str, Any]

# The lowest tier has no money, so that a scenario can be about that.
ALLOWANCES = PLENTY | {"basic": 0}


@asynccontextmanager
async def started(
    stack: Stack, scripted: Scripted, variant: str, folder: Path
) -> AsyncIterator["Runs"]:
    name = f"interfaces_{variant}"
    async with Runner.start(
        stack,
        scripted,
        name,
        folder / "log",
        variant=variant,
        allowances=ALLOWANCES,
        # A heartbeat that a busy machine delays would repeat a step, which is a difference.
        run_heartbeat_s=60.0,
    ) as runner:
        yield Runs(runner)


class Runs:
    """Of one variant."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def _run(self, scenario: Scenario, kind: str) -> Json:
        work = await Work.begin(self._runner, kind, tier=scenario.tier, scopes=scenario.scopes)
        try:
            await scenario.run(work)
            return await work.outcome()
        finally:
            await work.interface.close()

    async def problems(self, name: str, kinds: Iterable[str] = INTERFACES) -> dict[str, str]:
        """What is not the same, by interface. All interfaces are used at the same time."""
        scenario = SCENARIOS[name]
        expected = await self._run(scenario, "rest")
        codes = [each["code"] for each in expected["refused"]]
        assert codes == list(scenario.refused), codes
        # REST runs a second time, so that a scenario whose result changes is found.
        found = await asyncio.gather(*[self._problem(scenario, kind, expected) for kind in kinds])
        return {kind: problem for kind, problem in zip(kinds, found, strict=True) if problem}

    async def _problem(self, scenario: Scenario, kind: str, expected: Json) -> str:
        try:
            found = await self._run(scenario, kind)
        except Exception:
            return traceback.format_exc()
        return differences(scenario, kind, expected, found)


def differences(scenario: Scenario, kind: str, expected: Json, found: Json) -> str:
    """What is not the same as through REST. Empty if everything is."""
    other = scenario.others.get(kind)
    if other is not None:
        codes = [each["code"] for each in found["refused"]]
        if codes != list(other.refused):
            return f"refused with {codes} and not with {list(other.refused)}"
        without = {"refused": None, "answers": None}
        expected, found = expected | without, found | without
    before, after = (
        json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (expected, found)
    )
    return "\n".join(unified_diff(before, after, "rest", kind, lineterm=""))
