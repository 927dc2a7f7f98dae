"""How much the conditions of rules can hold, and how much of them a worker reads."""

import time
from typing import Any

import pytest

from rota.platform import json
from rota.platform.canonical import canonical_json
from rota.rules import conditions
from rota.rules.model import MAX_BYTES_IN_FORCE
from tests.agents.conftest import counted_statements
from tests.policies.world import Office, OfficeRun, code, review_of
from tests.rules.test_rules import body, make

LONG = "x" * 60_000


def covering(text: str) -> dict[str, Any]:
    """Long conditions, of which four fit into an account."""
    return {"text": {"enum": [text, LONG]}}


async def test_the_conditions_of_the_rules_in_force_have_a_limit_together(
    run: OfficeRun, office: Office
) -> None:
    rules = [await make(run, office.owner, arguments=covering(str(n))) for n in range(4)]
    refused = await office.owner.post("/api/rules", body(run, arguments=covering("4")))
    assert (refused.status_code, code(refused)) == (409, "CONFLICT")
    assert f"The limit is {MAX_BYTES_IN_FORCE}" in refused.json()["error"]["message"]
    await make(run, office.owner)
    await office.owner.delete(f"/api/rules/{rules[0]['id']}")
    await make(run, office.owner, arguments=covering("4"))


async def test_of_rules_from_before_the_limit_the_oldest_work(
    run: OfficeRun, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("rota.rules.service.MAX_BYTES_IN_FORCE", 2**30)
        for n in range(5):
            # The newest one expires first.
            expires = f"2099-01-{10 - n:02}T12:00:00Z"
            await make(run, office.owner, arguments=covering(str(n)), expiresAt=expires)
        # Those of another tool or agent do not count.
        await make(run, office.owner, agent="collector", arguments=covering("other"))
    task = await run.start(office.owner)
    await run.answer({"text": "0"}, {"text": "3"}, {"text": "4"})
    items = (await review_of(office.owner, task))["items"]
    assert [item["decision"] for item in items] == ["approved", "approved", None]


async def test_the_rules_are_read_once_for_all_calls_of_an_answer(
    run: OfficeRun, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(run, office.owner, arguments={"text": {"const": "one"}})
    await run.start(office.owner)
    with counted_statements(monkeypatch) as statements:
        await run.answer({"text": "one"}, {"text": "two"}, {"text": "three"})
    assert len([each for each in statements if "FROM rules" in each]) == 1


@pytest.mark.timed
def test_as_many_conditions_as_fit_are_quick_to_compare() -> None:
    """Written as JSON to compare them, the values take more than half a second."""
    of_one = {f"a{n}": {"enum": [2] * 99 + [1]} for n in range(90)}
    text = canonical_json(of_one)
    rules = [json.exact(text) for _ in range(MAX_BYTES_IN_FORCE // len(text))]
    call = dict.fromkeys(of_one, 1)
    started = time.process_time()
    assert all(conditions.cover(rule, call) for rule in rules)
    assert time.process_time() - started < 0.25
