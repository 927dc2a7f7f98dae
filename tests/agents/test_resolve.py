"""Resolve: which agent it finds for a description of work, and for whom."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rota.agents.queries import MAX_CANDIDATES, MIN_SCORE
from tests.agents.conftest import person_of
from tests.agents.test_endpoints import FIELDS, SHIPPED
from tests.service import Person, Service

FOLDER = Path(__file__).parent
DESCRIPTIONS: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (FOLDER / "work_descriptions.yaml").read_text()
)
MORE: dict[str, list[str]] = yaml.safe_load((FOLDER / "work_descriptions_more.yaml").read_text())
HELD_OUT = {name: halves["held_out"] for name, halves in DESCRIPTIONS.items()}
DEVELOPMENT = {name: [*halves["development"], *MORE[name]] for name, halves in DESCRIPTIONS.items()}
# Work that no agent does.
NONE = "none"


async def candidates(person: Person, work: str) -> list[dict[str, Any]]:
    response = await person.get("/api/agents/resolve", params={"q": work})
    if response.status_code == 404:
        return []
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["agent"]["name"] == body["candidates"][0]["agent"]["name"]
    assert body["score"] == body["candidates"][0]["score"]
    found: list[dict[str, Any]] = body["candidates"]
    return found


async def names(person: Person, work: str) -> list[str]:
    return [candidate["agent"]["name"] for candidate in await candidates(person, work)]


def test_every_shipped_agent_has_descriptions_in_both_halves() -> None:
    agents = {agent.name for agent in SHIPPED}
    assert HELD_OUT.keys() == DEVELOPMENT.keys() == agents | {NONE}
    assert all(len(works) >= 3 for works in HELD_OUT.values())
    held_out = {work for works in HELD_OUT.values() for work in works}
    assert held_out.isdisjoint(work for works in DEVELOPMENT.values() for work in works)


@pytest.mark.parametrize(
    ("half", "first", "first_three", "refused"),
    [(DEVELOPMENT, 0.9, 0.95, 0.8), (HELD_OUT, 0.85, 0.95, 0.8)],
    ids=["development", "held_out"],
)
async def test_descriptions_of_work_find_the_right_agent(
    reader: Person, half: dict[str, list[str]], first: float, first_three: float, refused: float
) -> None:
    """The held-out half is the honest figure. Do not tune agents or the search with it."""
    found = {
        (name, work): await names(reader, work) for name, works in half.items() for work in works
    }
    right = {key: answer for key, answer in found.items() if key[0] != NONE}
    wrong = [answer for key, answer in found.items() if key[0] == NONE]
    missed = {work: answer[:3] for (name, work), answer in right.items() if answer[:1] != [name]}
    in_three = sum(name in answer[:3] for (name, _), answer in right.items())
    print(f"{len(right)} descriptions: top-1 {1 - len(missed) / len(right):.3f},")
    print(f"top-3 {in_three / len(right):.3f}, refused {sum(not a for a in wrong)}/{len(wrong)}")
    assert 1 - len(missed) / len(right) >= first, missed
    assert in_three / len(right) >= first_three, missed
    assert sum(not answer for answer in wrong) / len(wrong) >= refused


@pytest.mark.parametrize(
    ("work", "name"),
    [
        ("cfo", "finance-director"),
        ("I need a CFO", "finance-director"),
        ("copywriter", "blog-writer"),
        ("chase an unpaid invoice", "receivables-clerk"),
        ("buy new laptops", "procurement-lead"),
        ("merge my code", "code-review-lead"),
    ],
)
async def test_an_alias_or_a_short_description_finds_its_agent(
    reader: Person, work: str, name: str
) -> None:
    assert (await names(reader, work))[0] == name


async def test_candidates_are_at_most_five_agents_as_in_lists_best_first(reader: Person) -> None:
    found = await candidates(reader, "write an article, a post and a report for our customers")
    assert len(found) == MAX_CANDIDATES
    scores = [candidate["score"] for candidate in found]
    assert scores == sorted(scores, reverse=True)
    assert all(MIN_SCORE <= score <= 1 for score in scores)
    listed = {a["name"]: a for a in (await reader.get("/api/agents?limit=200")).json()["agents"]}
    for candidate in found:
        assert candidate.keys() == {"agent", "score"}
        assert candidate["agent"].keys() == FIELDS
        assert candidate["agent"] == listed[candidate["agent"]["name"]]


async def test_open_agents_come_before_locked_ones(catalog: Service, reader: Person) -> None:
    person = await person_of(catalog, "basic")
    mixed = 0
    for works in DEVELOPMENT.values():
        for work in works[:3]:
            locks = [candidate["agent"]["locked"] for candidate in await candidates(person, work)]
            assert locks == sorted(locks), work
            mixed += len(set(locks)) == 2
    assert mixed > 0
    work = "write to a prospect and clean up his records in the CRM"
    assert (await names(reader, work))[0] == "crm-steward"
    found = await names(person, work)
    assert (found[0], found[-1]) == ("outreach-writer", "crm-steward")


async def test_a_locked_agent_that_fits_much_better_is_the_answer(catalog: Service) -> None:
    person = await person_of(catalog, "basic")
    [best, *_] = await candidates(person, "close the books and reconcile the ledger at month end")
    assert (best["agent"]["name"], best["agent"]["locked"]) == ("close-lead", True)


@pytest.mark.parametrize("work", ["write", "a nice day", "tell me a joke", "play some jazz"])
async def test_a_weak_match_is_not_an_answer(reader: Person, work: str) -> None:
    response = await reader.get("/api/agents/resolve", params={"q": work})
    assert response.status_code == 404, response.text
    assert "Try other words" in response.json()["error"]["message"]
