"""The same work through every interface leaves the same tasks, events, charges and refusals."""

import pytest

from tests.interfaces.runs import Runs, differences
from tests.interfaces.scenarios import SCENARIOS
from tests.sizes import FULL

RUN = [name for name, each in SCENARIOS.items() if FULL or each.in_ci]


@pytest.mark.parametrize("name", RUN)
async def test_a_scenario_leaves_the_same_through_every_interface(runs: Runs, name: str) -> None:
    problems = await runs.problems(name)
    assert not problems, "\n".join(f"{kind}: {text}" for kind, text in problems.items())


def test_a_difference_is_found() -> None:
    scenario = SCENARIOS["unknown_field"]
    expected = {"refused": [{"code": "VALIDATION_ERROR"}], "answers": [], "tasks": []}
    assert differences(scenario, "mcp", expected, expected) == ""
    created = {**expected, "tasks": [{"id": "task 1"}]}
    assert "task 1" in differences(scenario, "mcp", expected, created)
    own = {**expected, "refused": [{"code": "TypeError"}]}
    assert differences(scenario, "sync", expected, own) == ""
    assert "TypeError" in differences(scenario, "mcp", expected, own)
    assert "refused with" in differences(scenario, "sync", expected, expected)
    assert "task 1" in differences(scenario, "sync", expected, {**own, "tasks": created["tasks"]})
