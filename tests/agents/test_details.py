"""What an agent can use and spend, and its versions, on both variants."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.agents.conftest import Folder, agent_text, person_of
from tests.service import Person, Service

LOWEST, HIGHEST = "basic", {"a": "enterprise", "b": "business"}


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """A service whose catalog these tests change."""
    name = f"agent_details_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        yield started


async def agent_of(person: Person, name: str) -> dict[str, Any]:
    response = await person.get(f"/api/agents/{name}")
    assert response.status_code == 200, response.text
    agent: dict[str, Any] = response.json()["agent"]
    return agent


async def versions_of(person: Person, name: str, query: str = "") -> tuple[list[Any], int]:
    response = await person.get(f"/api/agents/{name}/versions{query}")
    assert response.status_code == 200, response.text
    return response.json()["versions"], response.json()["total"]


async def test_versions_show_what_each_change_was(service: Service, folder: Folder) -> None:
    text = agent_text("scribe", instructions="Write.")
    await sync(service.database_url, folder(scribe=text))
    changed = text.replace("tools: []", 'tools: ["docs/*"]\napproval: {tools: ["docs/add_*"]}')
    changed = changed.replace("budgetCents: 10", "budgetCents: 20").replace("Write.", "Write well.")
    await sync(service.database_url, folder(scribe=changed))
    person = await person_of(service, LOWEST)
    agent = await agent_of(person, "scribe")
    assert (agent["version"], agent["instructions"]) == (2, "Write well.")
    assert agent["approval"] == {"run": False, "tools": ["docs/add_*"], "output": False}
    [second, first], total = await versions_of(person, "scribe")
    assert total == 2
    assert second.pop("createdAt") > first.pop("createdAt")
    assert second == {
        "version": 2,
        "current": True,
        "instructions": "Write well.",
        "model": "default",
        "tools": ["docs/*"],
        "approval": {"run": False, "tools": ["docs/add_*"], "output": False},
        "budgetCents": 20,
        "maxSteps": 5,
        "maxConcurrent": None,
        "outputSchema": None,
    }
    assert first == {
        "version": 1,
        "current": False,
        "instructions": "Write.",
        "model": "default",
        "tools": [],
        "approval": {"run": False, "tools": "writes", "output": False},
        "budgetCents": 10,
        "maxSteps": 5,
        "maxConcurrent": None,
        "outputSchema": None,
    }
    page, total = await versions_of(person, "scribe", "?limit=1&offset=1")
    assert ([each["version"] for each in page], total) == ([1], 2)


async def test_a_locked_agent_shows_what_one_would_get_but_not_its_instructions(
    service: Service, folder: Folder
) -> None:
    await sync(
        service.database_url,
        folder(chief=agent_text("chief", required="ENTERPRISE", aliases="ceo")),
    )
    guest = await person_of(service, LOWEST)
    agent = await agent_of(guest, "chief")
    assert (agent["locked"], agent["instructions"]) == (True, None)
    assert (agent["budgetCents"], agent["maxSteps"], agent["aliases"]) == (10, 5, ["ceo"])
    # The rule for the model is that of a single agent.
    assert ("model" in agent) is (service.variant == "a")
    [version], _ = await versions_of(guest, "chief")
    assert version["instructions"] is None
    assert ("model" in version) is (service.variant == "a")
    member = await person_of(service, HIGHEST[service.variant])
    assert (await agent_of(member, "chief"))["instructions"] == "Do it well."
    [version], _ = await versions_of(member, "chief")
    assert (version["instructions"], version["model"]) == ("Do it well.", "default")


async def test_an_earlier_version_for_a_higher_tier_keeps_its_instructions_secret(
    service: Service, folder: Folder
) -> None:
    for required, text in (("ENTERPRISE", "The secret."), ("BASIC", "For everyone.")):
        catalog = folder(planner=agent_text("planner", required=required, instructions=text))
        await sync(service.database_url, catalog)
    guest = await person_of(service, LOWEST)
    found, _ = await versions_of(guest, "planner")
    assert [each["instructions"] for each in found] == ["For everyone.", None]


async def test_unknown_and_retired_agents_have_no_versions(
    service: Service, folder: Folder
) -> None:
    for name in ("old", "new"):
        await sync(service.database_url, folder(**{name: agent_text(name)}))
    person = await person_of(service, LOWEST)
    for name in ("old", "unheard-of"):
        for path in ("", "/versions", "/statistics"):
            response = await person.get(f"/api/agents/{name}{path}")
            assert response.status_code == 404
            assert name in response.json()["error"]["message"]
